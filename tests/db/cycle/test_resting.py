"""Deployments without a rollout become what they should be."""

import pytest
from sqlalchemy import Engine

from domain.model.states import RouteStatus
from tests.support.pictures.pictures import DESTROYED, PROVISIONING, READY, SCALING
from tests.support.rows.deployments import (
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
from tests.support.workers.coordinators import coordinator_without_redis, handler_for, run_until_quiet


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
    deployment = snapshot(engine, made.id)
    assert (deployment.status, deployment.desired_replicas) == (READY, n)
    assert drawings == seen


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


def test_what_ends_soon_after_it_has_come_up_again_and_again_is_degraded_and_starts_ever_more_seldom(
    engine: Engine,
) -> None:
    made = make_deployment(engine, "■", n=1)
    coordinator = coordinator_without_redis(engine)
    for minute in range(20):
        start_all(engine)
        run_until_quiet(coordinator)
        running = [route.id for route in snapshot(engine, made.id).active_routes]
        become(engine, RouteStatus.FAILED, *running)
        mark(engine, made.id)
        run_until_quiet(coordinator)
        if minute > 10:
            assert snapshot(engine, made.id).degraded_reason
        a_minute_passes(engine)
        run_until_quiet(coordinator)
    (counted,) = read(engine, "SELECT count(*) AS routes FROM routes")
    assert counted["routes"] <= 10, "and not one in each of the 20 minutes"


def a_minute_passes(engine: Engine) -> None:
    """For what a failing start is measured by."""
    clocks = ("last_failed_at", "came_up_at", "retry_at", "due_at", "phase_started_at")
    moved = ", ".join(f"{clock} = {clock} - interval '1 minute'" for clock in clocks)
    write(engine, f"UPDATE deployments SET {moved}")


def test_a_scaling_that_takes_too_long_is_ready_degraded_and_tried_again_later(engine: Engine) -> None:
    made = make_deployment(engine, "■■◇", status=SCALING, policy=ROLLING)
    write(engine, "UPDATE deployments SET phase_started_at = now() - interval '31 minutes'")
    coordinator = coordinator_without_redis(engine)
    run_until_quiet(coordinator)
    deployment = snapshot(engine, made.id)
    assert deployment.status == READY
    assert "30 minutes" in str(deployment.degraded_reason)
    write(engine, "UPDATE deployments SET retry_at = now(), due_at = now()")
    coordinator.process_chunk(handler_for(READY))
    assert snapshot(engine, made.id).status == SCALING
    start_all(engine)
    run_until_quiet(coordinator)
    assert (snapshot(engine, made.id).status, snapshot(engine, made.id).degraded_reason) == (READY, None)
