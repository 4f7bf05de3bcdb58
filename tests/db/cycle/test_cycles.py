"""Rollouts through real Postgres, cycle by cycle: the coordinator works on chunks, the test is the world."""

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.replicas.host_routes import record_stopped
from domain.model.states import DeploymentLifecycleStatus, RouteStatus
from tests.support.pictures.pictures import PROVISIONING, READY, ROLLING_BACK, SCALING
from tests.support.pictures.policies import COUNTING
from tests.support.rows.deployments import ask, become, drawn, make_deployment, mark, read, snapshot, start_all, write
from tests.support.rows.rows import steps
from tests.support.workers.coordinators import coordinator_without_redis, handler_for, run_until_quiet

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


def test_the_seven_cycles_go_through_postgres(engine: Engine) -> None:
    made = make_deployment(engine)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    coordinator, version = coordinator_without_redis(engine), 2
    for _number, old, new, what in ROWS:
        deployment = snapshot(engine, made.id)
        assert (deployment.version, deployment.status) == (version, PROVISIONING)
        assert drawn(engine, made.id) == f"{old}|{new}"
        mark(engine, made.id)
        done = coordinator.process_chunk(handler_for(PROVISIONING))
        assert done.looked_at == 1
        if what == "wait":
            assert snapshot(engine, made.id).version == version
            start_all(engine)
        applied = (done.applied.created, done.applied.drained, done.glanced)
        assert applied == {"wait": (0, 0, 1), "create 1, drain 1": (1, 1, 0)}.get(what, (0, 0, 0))
        version += 1
    after = snapshot(engine, made.id)
    assert (after.status, after.current_revision_id, after.deploying_revision_id) == (READY, made.v2, None)
    assert drawn(engine, made.id) == "■■■"
    (rollout,) = read(engine, "SELECT * FROM rollouts")
    assert (rollout["outcome"], rollout["steps"], rollout["failed_routes"]) == ("completed", 4, 0)
    assert [step["step_no"] for step in steps(engine)] == [1, 2, 3, 4]


@pytest.mark.parametrize(("status", "n", "picture"), [(PROVISIONING, 3, "■■|~~"), (SCALING, 3, "■■~~")])
def test_where_stopping_replicas_count_what_waits_for_them_goes_on_when_one_is_gone(
    engine: Engine, status: DeploymentLifecycleStatus, n: int, picture: str
) -> None:
    made = make_deployment(engine, picture, n=n, status=status, policy=COUNTING)
    coordinator = coordinator_without_redis(engine)
    assert coordinator.process_chunk(handler_for(status)).applied.created == 0
    (row,) = read(engine, "SELECT reason FROM deployments")
    assert "2 live + 2 stopping of at most 4" in row["reason"]
    assert coordinator.process_chunk(handler_for(status)).looked_at == 0
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


def test_a_timeout_takes_everything_back_within_the_budget(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    write(engine, "UPDATE rollouts SET deadline = clock_timestamp()")
    coordinator, seen = coordinator_without_redis(engine), []
    coordinator.process_chunk(handler_for(PROVISIONING))
    assert snapshot(engine, made.id).status == ROLLING_BACK
    while run_until_quiet(coordinator):
        seen.append(drawn(engine, made.id))
        start_all(engine)
    deployment = snapshot(engine, made.id)
    assert deployment.status == READY
    assert (deployment.current_revision_id, deployment.deploying_revision_id) == (made.v1, None)
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
    assert rollout["back_reason"].startswith("3 new replicas failed, the limit is 3")


def test_scaling_up_in_the_middle_of_a_rollout_ends_with_the_new_count_of_the_new_revision(engine: Engine) -> None:
    made = make_deployment(engine, "■■|■", status=PROVISIONING)
    ask(engine, "scale", deployment="web", desired_replicas=5)
    coordinator = coordinator_without_redis(engine)
    while run_until_quiet(coordinator):
        start_all(engine)
    deployment = snapshot(engine, made.id)
    assert (deployment.status, deployment.current_revision_id, drawn(engine, made.id)) == (READY, made.v2, "■■■■■")
