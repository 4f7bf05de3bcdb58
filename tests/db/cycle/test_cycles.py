"""Rollouts through real Postgres, cycle by cycle: the coordinator works on chunks, the test is the world."""

from typing import Any

import pytest
from sqlalchemy import Engine

from db.engine import transaction
from db.replicas.routes import record_stopped
from domain.model import DeploymentLifecycleStatus, RouteStatus
from domain.recording import inputs_from_json
from tests.support.coordinators import coordinator_without_redis, handler_for, run_until_quiet
from tests.support.deployments import (
    ROLLING,
    ask,
    become,
    drawn,
    make_deployment,
    mark,
    read,
    snapshot,
    start_all,
    write,
)
from tests.support.pictures import DESTROYED, PROVISIONING, READY, ROLLING_BACK, SCALING, happens

N3_S1_U1 = """
| 0 | ■■■ |     | create 1, drain 1      |
| 1 | ■■  | ◇   | wait                   |
| 2 | ■■  | ■   | create 1, drain 1      |
| 3 | ■   | ■◇  | wait                   |
| 4 | ■   | ■■  | create 1, drain 1      |
| 5 |     | ■■◇ | wait                   |
| 6 |     | ■■■ | completed, swap, ready |
"""
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in N3_S1_U1.strip().splitlines()]


def history(engine: Engine) -> list[dict[str, Any]]:
    return read(engine, "SELECT *, updated_at - created_at AS lasted FROM deployment_history ORDER BY created_at")


def steps(engine: Engine) -> list[dict[str, Any]]:
    return read(engine, "SELECT * FROM rollout_steps ORDER BY rollout_id, step_no")


def test_the_seven_cycles_go_through_postgres(engine: Engine) -> None:
    made = make_deployment(engine)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    coordinator, version = coordinator_without_redis(engine), 2
    for _number, old, new, what in ROWS:
        one = snapshot(engine, made.id)
        assert (one.version, drawn(engine, made.id), one.status) == (version, f"{old}|{new}", PROVISIONING)
        mark(engine, made.id)
        done = coordinator.process_chunk(handler_for(PROVISIONING))
        assert done.seen == 1
        if what == "wait":
            assert snapshot(engine, made.id).version == version
            start_all(engine)
        applied = (done.applied.created, done.applied.drained, len(done.decided.skipped))
        assert applied == {"wait": (0, 0, 1), "create 1, drain 1": (1, 1, 0)}.get(what, (0, 0, 0))
        version += 1
    after = snapshot(engine, made.id)
    assert (after.status, after.current_revision_id, after.deploying_revision_id) == (READY, made.v2, None)
    assert drawn(engine, made.id) == "■■■"
    (rollout,) = read(engine, "SELECT * FROM rollouts")
    assert (rollout["outcome"], rollout["steps"], rollout["failed_routes"]) == ("completed", 4, 0)
    assert [step["step_no"] for step in steps(engine)] == [1, 2, 3, 4]


COUNTING = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1, "count_stopping": True}}


@pytest.mark.parametrize(("status", "n", "picture"), [(PROVISIONING, 3, "■■|~~"), (SCALING, 3, "■■~~")])
def test_where_stopping_replicas_count_what_waits_for_them_goes_on_when_one_is_gone(
    engine: Engine, status: DeploymentLifecycleStatus, n: int, picture: str
) -> None:
    made = make_deployment(engine, picture, n=n, status=status, policy=COUNTING)
    coordinator = coordinator_without_redis(engine)
    assert coordinator.process_chunk(handler_for(status)).applied.created == 0
    (row,) = read(engine, "SELECT reason FROM deployments")
    assert "2 live + 2 stopping of at most 4" in row["reason"]
    assert coordinator.process_chunk(handler_for(status)).seen == 0
    with transaction(engine) as connection:
        record_stopped(connection, made.routes[-1:])
    assert coordinator.process_chunk(handler_for(status)).applied.created == 1


def test_with_slow_stops_live_and_stopping_stay_within_the_ceiling(engine: Engine) -> None:
    made = make_deployment(engine, policy=COUNTING)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    assert read(engine, "SELECT count_stopping FROM rollouts") == [{"count_stopping": True}]
    coordinator, most = coordinator_without_redis(engine), 0
    for _ in range(40):
        run_until_quiet(coordinator)
        routes = snapshot(engine, made.id).routes
        most = max(most, len(routes))
        start_all(engine)
        run_until_quiet(coordinator)
        stopping = [route.id for route in routes if route.status is RouteStatus.TERMINATING]
        with transaction(engine) as connection:
            record_stopped(connection, stopping[:1])
    assert (snapshot(engine, made.id).status, drawn(engine, made.id), most) == (READY, "■■■", 4)


def test_each_step_can_be_decided_again_from_what_was_kept(engine: Engine) -> None:
    make_deployment(engine)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    coordinator = coordinator_without_redis(engine)
    while run_until_quiet(coordinator):
        start_all(engine)
    replayed = []
    for step in steps(engine):
        one, now = inputs_from_json(step["inputs"])
        decision = handler_for(one.status).decide(one, now)
        assert decision.reason == step["decision"]["reason"]
        replayed.append(happens(one, decision))
    assert replayed == ["create 1, drain ■"] * 3 + ["completed"]


def test_the_swap_and_ready_are_one_transaction(engine: Engine) -> None:
    made = make_deployment(engine, "|■■■", status=PROVISIONING)
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    (row,) = read(
        engine,
        """
        SELECT d.lifecycle, d.current_revision_id, o.outcome, d.xmin::text = o.xmin::text AS with_rollout,
               d.xmin::text = s.xmin::text AS with_step, d.xmin::text = h.xmin::text AS with_history
          FROM deployments d JOIN rollouts o ON o.deployment_id = d.id JOIN rollout_steps s ON s.rollout_id = o.id
          JOIN deployment_history h ON h.id = d.history_id
        """,
    )
    assert (row["lifecycle"], row["current_revision_id"], row["outcome"]) == ("ready", made.v2, "completed")
    assert (row["with_rollout"], row["with_step"], row["with_history"]) == (True, True, True)


def test_a_timeout_takes_everything_back_within_the_budget(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    write(engine, "UPDATE rollouts SET deadline = clock_timestamp()")
    coordinator, seen = coordinator_without_redis(engine), []
    coordinator.process_chunk(handler_for(PROVISIONING))
    assert snapshot(engine, made.id).status == ROLLING_BACK
    while run_until_quiet(coordinator):
        seen.append(drawn(engine, made.id))
        start_all(engine)
    one = snapshot(engine, made.id)
    assert (one.status, one.current_revision_id, one.deploying_revision_id) == (READY, made.v1, None)
    assert seen == ["■■◇|", "■■■"]
    (rollout,) = read(engine, "SELECT outcome, back_reason FROM rollouts")
    assert rollout["outcome"] == "rolled_back"
    assert rollout["back_reason"].startswith("the timeout of 1800 s has passed")
    numbers = [step["step_no"] for step in steps(engine)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_too_many_failed_starts_take_it_back(engine: Engine) -> None:
    made = make_deployment(engine)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    coordinator = coordinator_without_redis(engine)
    for _ in range(3):
        coordinator.process_chunk(handler_for(PROVISIONING))
        born = [row["id"] for row in read(engine, "SELECT id FROM routes WHERE status = 'provisioning'")]
        assert len(born) == 1
        become(engine, RouteStatus.FAILED, *born)
        write(engine, "UPDATE deployments SET last_failed_at = last_failed_at - interval '1 hour'")
    coordinator.process_chunk(handler_for(PROVISIONING))
    assert snapshot(engine, made.id).status == ROLLING_BACK
    (rollout,) = read(engine, "SELECT back_reason FROM rollouts")
    assert rollout["back_reason"].startswith("3 new replicas failed, 3 are the limit")


def test_the_timeline_counts_what_repeats_and_a_wait_writes_nothing(engine: Engine) -> None:
    made = make_deployment(engine)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    coordinator = coordinator_without_redis(engine)
    while snapshot(engine, made.id).status == PROVISIONING:
        run_until_quiet(coordinator)
        mark(engine, made.id)
        coordinator.process_chunk(handler_for(PROVISIONING))  # a wait
        start_all(engine)
    told = [(row["phase"], row["result"], row["attempts"]) for row in history(engine)]
    assert told == [
        ("activate", "asked", 1),
        ("deploying_provisioning", "need_retry", 3),
        ("deploying_provisioning", "success", 1),
    ]
    merged = history(engine)[1]
    assert merged["lasted"].total_seconds() > 0
    assert merged["message"].startswith("creating 1 new (3 live + 1 ≤ 4)")


def test_two_rollouts_do_not_share_a_record(engine: Engine) -> None:
    make_deployment(engine)
    coordinator = coordinator_without_redis(engine)
    for revision in ("v2", "v1"):
        ask(engine, "activate_revision", deployment="web", revision=revision)
        while run_until_quiet(coordinator):
            start_all(engine)
    moved = [row for row in history(engine) if row["result"] == "need_retry"]
    assert [row["attempts"] for row in moved] == [3, 3]
    assert len({row["rollout_id"] for row in moved}) == 2


@pytest.mark.parametrize(
    ("before", "n", "seen"),
    [
        pytest.param("■■■", 5, ["■■■◇◇", "■■■■■"], id="up"),
        pytest.param("■■■", 1, ["■"], id="down"),
        pytest.param("", 2, ["◇◇", "■■"], id="from nothing"),
        pytest.param("■■", 0, [""], id="to nothing"),
        pytest.param("■□■", 3, ["■■■"], id="out of traffic"),
        pytest.param("■|■■", 3, ["■|■■◇", "■■■"], id="a foreign one"),
    ],
)
def test_a_resting_deployment_becomes_what_it_should_be(engine: Engine, before: str, n: int, seen: list[str]) -> None:
    made = make_deployment(engine, before, n=n)
    coordinator = coordinator_without_redis(engine)
    drawings: list[str] = []
    while run_until_quiet(coordinator):
        if not drawings or drawn(engine, made.id) != drawings[-1]:
            drawings.append(drawn(engine, made.id))
        start_all(engine)
    one = snapshot(engine, made.id)
    assert (one.status, one.desired_replicas) == (READY, n)
    assert drawings == seen


def test_scaling_up_in_the_middle_of_a_rollout_ends_with_the_new_count_of_the_new_revision(engine: Engine) -> None:
    made = make_deployment(engine, "■■|■", status=PROVISIONING)
    ask(engine, "scale", deployment="web", desired_replicas=5)
    coordinator = coordinator_without_redis(engine)
    while run_until_quiet(coordinator):
        start_all(engine)
    one = snapshot(engine, made.id)
    assert (one.status, one.current_revision_id, drawn(engine, made.id)) == (READY, made.v2, "■■■■■")


def test_a_deployment_is_destroyed_when_its_last_replica_is_gone_and_not_before(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    ask(engine, "destroy", deployment="web")
    coordinator = coordinator_without_redis(engine)
    run_until_quiet(coordinator)
    assert (str(snapshot(engine, made.id).status), drawn(engine, made.id)) == ("destroying", "")
    gone = "UPDATE routes SET status = 'terminated', stopped_at = now() WHERE id = ANY(%s)"
    write(engine, gone, list(made.routes[:2]))
    mark(engine, made.id)
    run_until_quiet(coordinator)
    assert str(snapshot(engine, made.id).status) == "destroying"
    write(engine, gone, list(made.routes[2:]))
    mark(engine, made.id)
    run_until_quiet(coordinator)
    assert snapshot(engine, made.id).status == DESTROYED
    assert read(engine, "SELECT 1 FROM deployments WHERE due_at IS NOT NULL") == [], "nobody looks at it any more"


def test_a_scaling_that_takes_too_long_is_ready_degraded_and_tried_again_later(engine: Engine) -> None:
    made = make_deployment(engine, "■■◇", status=SCALING, policy=ROLLING)
    write(engine, "UPDATE deployments SET phase_started_at = now() - interval '31 minutes'")
    coordinator = coordinator_without_redis(engine)
    run_until_quiet(coordinator)
    one = snapshot(engine, made.id)
    assert one.status == READY
    assert "30 minutes" in str(one.degraded_reason)
    write(engine, "UPDATE deployments SET retry_at = now(), due_at = now()")
    coordinator.process_chunk(handler_for(READY))
    assert snapshot(engine, made.id).status == SCALING
    start_all(engine)
    run_until_quiet(coordinator)
    assert (snapshot(engine, made.id).status, snapshot(engine, made.id).degraded_reason) == (READY, None)
