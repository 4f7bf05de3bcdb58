"""Until its new revision has answered somebody a rollout is not proven: it is counted on."""

from functools import partial
from typing import LiteralString

import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from db.commands.execute import execute_pending
from db.connection.transactions import in_transaction
from db.proxies.measurements import due_rollouts, record_look
from domain.model.answer_counts import Answers, Counters
from domain.model.states import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle
from tests.support.rows.deployments import Made, ask, complete, make_deployment, read, write

DEPLOYING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PROVISIONING)


def test_an_undo_is_not_asked_whether_it_answers(engine: Engine) -> None:
    make_deployment(engine, "■|■", status=DEPLOYING)
    assert [due.unanswered for due in in_transaction(engine, lambda it: due_rollouts(it, 0))] == [0]
    write(engine, "UPDATE rollouts SET is_undo = true")
    assert [due.unanswered for due in in_transaction(engine, lambda it: due_rollouts(it, 0))] == [None]


@pytest.mark.parametrize(
    ("changed", "is_due"),
    [
        ("", True),
        ("UPDATE rollouts SET unanswered = NULL", False),
        ("UPDATE rollouts SET is_undo = true", False),
        ("UPDATE rollouts SET ended_at = ended_at - interval '61 s'", False),
        ("UPDATE rollouts SET limits = jsonb_set(limits, '{unanswered}', 'null')", False),
        ("UPDATE rollouts SET limits = jsonb_set(limits, '{unanswered_within_seconds}', '0')", False),
        ("UPDATE rollouts SET outcome = 'rolled_back'", False),
        ("UPDATE deployments SET current_revision_id = (SELECT from_revision_id FROM rollouts)", False),
    ],
)
def test_what_ended_and_answered_nobody_is_looked_at_on(engine: Engine, changed: LiteralString, is_due: bool) -> None:  # noqa: FBT001
    made = make_deployment(engine, "■|■", status=DEPLOYING)
    complete(engine, made)
    if changed:
        write(engine, changed)
    due = in_transaction(engine, lambda it: due_rollouts(it, 0))
    assert [(its.has_ended, its.policy["limits"]["unanswered"]) for its in due] == ([(True, 20)] if is_due else [])


def test_the_old_revision_is_in_use_once_it_has_answered_somebody(engine: Engine) -> None:
    def in_use() -> list[bool]:
        return [row["in_use"] for row in read(engine, "SELECT in_use FROM rollouts")]

    made = make_deployment(engine, "■■|■", n=2, status=DEPLOYING)
    for number, (done, failed) in enumerate([(0, 0), (3, 3), (5, 4)]):
        (due,) = in_transaction(engine, lambda it: due_rollouts(it, 0))
        told = {"edge": Counters(10 + number, {made.v1: Answers(done, failed)})}
        in_transaction(engine, partial(record_look, rollout=due, counters=told, live=1))
        assert in_use() == [number == 2]


@pytest.mark.parametrize(
    ("ended", "delay", "seconds"),
    [(False, None, 0), (True, None, 0), (True, 0, 0), (True, 40, 40), (True, 600, 60)],
)
def test_the_first_answer_ends_what_is_parked_until_then(
    engine: Engine, *, ended: bool, delay: int | None, seconds: int
) -> None:
    made = make_deployment(engine, "□|■■", n=2, status=DEPLOYING)
    write(engine, "UPDATE routes SET parked_until = clock_timestamp() + interval '60 s' WHERE id = %s", made.routes[0])
    if delay is not None:
        write(
            engine, "UPDATE rollouts SET strategy = 'blue_green', spec = %s", Jsonb({"scale_down_delay_seconds": delay})
        )
    if ended:
        complete(engine, made)
    write(engine, "UPDATE deployments SET due_at = NULL")
    for number in range(2):
        (due,) = in_transaction(engine, lambda it: due_rollouts(it, 0))
        told = {"edge": Counters(10 + number, {made.v2: Answers(number)})}
        in_transaction(engine, partial(record_look, rollout=due, counters=told, live=1))
    left = "SELECT extract(epoch FROM parked_until - clock_timestamp())::float8 AS left FROM routes WHERE id = %s"
    (row,) = read(engine, left, made.routes[0])
    assert row["left"] == pytest.approx(seconds, abs=10)
    assert read(engine, "SELECT due_at IS NOT NULL AS is_marked FROM deployments") == [{"is_marked": True}]


@pytest.mark.parametrize(("sent", "is_undone"), [(19, False), (20, True)])
def test_what_ended_and_answers_none_of_as_many_as_its_limit_says_is_undone_by_a_wish(
    engine: Engine, sent: int, *, is_undone: bool
) -> None:
    made = make_deployment(engine, "■|■", n=1, status=DEPLOYING)
    complete(engine, made)
    for number, failed in enumerate([0, sent]):
        (due,) = in_transaction(engine, lambda it: due_rollouts(it, 0))
        told = {"edge": Counters(10 + number, {made.v1: Answers(50 * number), made.v2: Answers(failed, failed)})}
        in_transaction(engine, partial(record_look, rollout=due, counters=told, live=1))
    assert read(engine, "SELECT unanswered FROM rollouts") == [{"unanswered": sent}]
    assert execute_pending(engine) == ({DEPLOYING} if is_undone else frozenset())
    reasons = [row["reason"] for row in read(engine, "SELECT reason FROM rollouts WHERE outcome IS NULL")]
    assert reasons == (["the new revision answered none of 20 requests"] if is_undone else [])


def failed_by_20(engine: Engine, made: Made) -> None:
    """Its new revision has answered none of 20 requests since the rollout has ended, and an undo is wished for."""
    for number, failed in enumerate([0, 20]):
        (due,) = in_transaction(engine, lambda it: due_rollouts(it, 0))
        told = {"edge": Counters(10 + number, {made.v1: Answers(50 * number), made.v2: Answers(failed, failed)})}
        in_transaction(engine, partial(record_look, rollout=due, counters=told, live=1))


def test_what_moves_on_the_way_makes_no_wish_for_an_undo_void(engine: Engine) -> None:
    """Its replicas are parked, started and found healthy meanwhile: the deployment's version counts all that."""
    made = make_deployment(engine, "■|■", n=1, status=DEPLOYING)
    complete(engine, made)
    failed_by_20(engine, made)
    write(engine, "UPDATE deployments SET version = version + 3")
    assert execute_pending(engine) == {DEPLOYING}
    assert read(engine, "SELECT is_undo FROM rollouts WHERE outcome IS NULL") == [{"is_undo": True}]


def test_what_a_person_has_begun_since_is_not_undone_and_nobody_is_told_to_look_again(engine: Engine) -> None:
    made = make_deployment(engine, "■|■", n=1, status=DEPLOYING)
    complete(engine, made)
    failed_by_20(engine, made)
    wish = read(engine, "SELECT deployment_id, request_id, task, payload, rollout_id FROM wishes")[0]
    write(engine, "DELETE FROM wishes")
    ask(engine, "activate_revision", deployment="web", revision="v1", reason="by hand")
    query = "INSERT INTO wishes (deployment_id, request_id, task, payload, rollout_id) VALUES (%s, %s, %s, %s, %s)"
    write(engine, query, *(Jsonb(value) if isinstance(value, dict) else value for value in wish.values()))
    assert execute_pending(engine) == frozenset()
    assert read(engine, "SELECT 1 FROM wishes") == []
    assert [
        row["message"] for row in read(engine, "SELECT message FROM deployment_history WHERE actor = 'rollway'")
    ] == []
