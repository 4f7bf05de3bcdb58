"""Rollouts that are held: by a freeze, by their group's budget and order; with two coordinators at once, too."""

from datetime import timedelta

from sqlalchemy import Engine

from domain.handlers.dispatch import HANDLERS
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import ask, make_deployment, read, start_all
from tests.support.rows.sent_statements import sent_by
from tests.support.rows.windows import begin, freeze, thaw
from tests.support.workers.coordinators import coordinator_without_redis, handler_for

STANDING = """
    SELECT d.reason, o.steps, o.clock_stopped_at IS NOT NULL AS stands, d.due_at
      FROM deployments d JOIN rollouts o ON o.id = d.rollout_id WHERE d.name = %s
"""


def standing(engine: Engine, name: str) -> tuple[str, bool, bool]:
    """Why it waits, whether it has moved, and whether its timeout is paused."""
    (row,) = read(engine, STANDING, name)
    return row["reason"], row["steps"] > 0, row["stands"]


def go_on(engine: Engine) -> None:
    """One round: everything is looked at, and what starts comes up."""
    read(engine, "UPDATE deployments SET due_at = clock_timestamp() WHERE lifecycle <> 'destroyed' RETURNING id")
    coordinator = coordinator_without_redis(engine)
    for handler in HANDLERS.values():
        coordinator.process_chunk(handler)
    start_all(engine)


def test_a_freeze_that_pauses_stops_the_clocks_and_what_it_held_goes_on_by_itself(engine: Engine) -> None:
    make_deployment(engine, "■■■")
    begin(engine, "web")
    go_on(engine)
    (before,) = read(engine, "SELECT deadline FROM rollouts")
    freeze(engine, pauses=True, reason="fair")
    go_on(engine)
    go_on(engine)
    reason, _, stands = standing(engine, "web")
    assert (reason.startswith("held by the freeze holidays (fair) until"), stands) == (True, True)
    (row,) = read(engine, STANDING, "web")
    assert row["due_at"] == read(engine, "SELECT ends_at FROM freezes")[0]["ends_at"]
    thaw(engine)
    go_on(engine)
    assert standing(engine, "web")[1:] == (True, False)
    assert read(engine, "SELECT deadline FROM rollouts")[0]["deadline"] > before["deadline"]


def test_what_has_moved_finishes_in_a_freeze_that_does_not_pause_and_what_has_not_waits(engine: Engine) -> None:
    for name in ("early", "late"):
        make_deployment(engine, "■■■", name=name)
    begin(engine, "early")
    go_on(engine)
    begin(engine, "late")
    freeze(engine)
    for _ in range(8):
        go_on(engine)
    assert read(engine, "SELECT lifecycle FROM deployments WHERE name = 'early'") == [{"lifecycle": "ready"}]
    assert standing(engine, "late")[1:] == (False, True)


def test_an_abort_leads_out_of_a_rollout_that_a_freeze_holds(engine: Engine) -> None:
    make_deployment(engine, "■■■")
    begin(engine, "web")
    go_on(engine)
    freeze(engine, pauses=True)
    go_on(engine)
    ask(engine, "abort", deployment="web")
    for _ in range(6):
        go_on(engine)
    assert read(engine, "SELECT outcome FROM rollouts") == [{"outcome": "rolled_back"}]


def test_a_group_lets_one_after_the_other_go_and_says_whom_the_next_waits_for(engine: Engine) -> None:
    for name in ("a", "b", "c"):
        make_deployment(engine, "■■■", name=name)
    ask(engine, "set_group", group="shop", deployments=["a", "b", "c"], most_at_once=1)
    begin(engine, "b", "a", "c")
    go_on(engine)
    assert standing(engine, "b")[1:] == (True, False)
    assert standing(engine, "a") == ("waits for the rollout of b: group shop has at most 1 at once", False, True)
    assert standing(engine, "c") == ("waits for the rollout of a and b: group shop has at most 1 at once", False, True)
    for _ in range(30):
        go_on(engine)
    query = "SELECT d.name, o.outcome FROM rollouts o JOIN deployments d ON d.id = o.deployment_id ORDER BY o.ended_at"
    ended = read(engine, query)
    assert [(row["name"], row["outcome"]) for row in ended] == [(name, "completed") for name in "bac"]


def test_in_a_group_with_an_order_a_rollout_waits_for_those_of_the_deployments_before_it(engine: Engine) -> None:
    for name in ("a", "b"):
        make_deployment(engine, "■■■", name=name)
    ask(engine, "set_group", group="shop", deployments=["a", "b"], in_order=True)
    begin(engine, "b", "a")
    go_on(engine)
    assert standing(engine, "b")[0] == "waits for the rollout of a: group shop goes in order"
    ask(engine, "pause", deployment="a")
    go_on(engine)
    assert standing(engine, "b")[0] == "waits for the rollout of a: group shop goes in order"
    ask(engine, "abort", deployment="a")
    for _ in range(12):
        go_on(engine)
    assert read(engine, "SELECT outcome FROM rollouts o ORDER BY outcome") == [
        {"outcome": "completed"},
        {"outcome": "rolled_back"},
    ]


def test_without_freezes_and_groups_no_statement_asks_for_them_and_with_them_a_chunk_sends_four_more(
    engine: Engine,
) -> None:
    sent, handler = sent_by(engine), handler_for(PROVISIONING)
    counts = []
    for already, more, group in ((0, 1, None), (1, 1, "one"), (2, 20, "many")):
        names = [f"web-{number}" for number in range(already, already + more)]
        for name in names:
            make_deployment(engine, "■■■|", name=name, status=PROVISIONING)
        if group:
            ask(engine, "set_group", group=group, deployments=names)
        read(engine, "UPDATE deployments SET due_at = NULL RETURNING id")
        read(engine, "UPDATE deployments SET due_at = now() WHERE name = ANY(%s) RETURNING id", names)
        sent.clear()
        assert coordinator_without_redis(engine).process_chunk(handler).looked_at == more
        counts.append(len(sent))
    assert [count - counts[0] for count in counts] == [0, 4, 4]


def test_a_rollout_that_waits_for_its_group_is_looked_at_again_soon(engine: Engine) -> None:
    for name in ("a", "b"):
        make_deployment(engine, "■■■", name=name)
    ask(engine, "set_group", group="shop", deployments=["a", "b"], most_at_once=1)
    begin(engine, "a", "b")
    go_on(engine)
    (row,) = read(engine, "SELECT due_at - clock_timestamp() AS soon FROM deployments WHERE name = 'b'")
    assert row["soon"] < timedelta(seconds=3)
