"""What a decision leaves behind: clocks, counters, outcomes, and the routes."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from domain.cycle.effects import after, back_reason_of, with_clock_running
from domain.cycle.writes import outcome_of
from domain.handlers.deploying import DeployingProvisioningHandler
from domain.handlers.dispatch import cycle
from domain.model.decision import Decision, RouteChanges, Stage
from domain.model.deployment import Deployment, Rollout, StartFailures
from domain.model.states import RolloutOutcome, RouteStatus, TrafficStatus
from domain.planning.simulator import with_status
from domain.steering.verbs import pause, resume
from tests.support.people.people import asking
from tests.support.pictures.pictures import (
    NOW,
    PROVISIONING,
    READY,
    ROLLING_BACK,
    V1,
    V2,
    deploying,
    resting,
    rolling_back,
    route_id,
)
from tests.support.pictures.policies import canary
from tests.support.pictures.simulation import applied


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def look(deployment: Deployment, seconds: float) -> Deployment:
    return applied(cycle(deployment, at(seconds)), at(seconds))


def rollout_of(deployment: Deployment) -> Rollout:
    assert deployment.rollout is not None
    return deployment.rollout


@pytest.mark.parametrize(
    ("progress_at", "moved_to"),
    [
        (0, 50),  # none while it was paused, from 10 to 60: it moves by those 50 s
        (10, 60),
        (20, 60),  # in the middle of the pause: no time has counted since, so it is now, and not 70
        (60, 60),
    ],
)
def test_progress_during_a_pause_is_not_moved_into_the_future(progress_at: float, moved_to: float) -> None:
    paused = replace(rollout_of(deploying("■■|◇")), clock_stopped_at=at(10), last_progress_at=at(progress_at))
    running = with_clock_running(paused, at(60))
    assert (running.last_progress_at, running.clock_stopped_at) == (at(moved_to), None)
    assert running.deadline == paused.deadline + timedelta(seconds=50)


def test_a_pause_is_over_with_the_next_cycle() -> None:
    starting = deploying("■■|◇")
    paused = look(pause(starting, asking(starting, at(10))).deployment, 30)
    assert rollout_of(paused).clock_stopped_at == at(10)
    running = rollout_of(look(resume(paused, asking(paused, at(60))).deployment, 60))
    assert (running.clock_stopped_at, running.deadline) == (None, rollout_of(starting).deadline + timedelta(seconds=50))


@pytest.mark.parametrize(
    ("picture", "failed"),
    [
        ("■■■|▲", 1),
        ("■■■|△", 0),  # nobody probed it, which is not its fault
        ("■■■|■", 0),
        ("▲■■|◇", 0),
        ("■■|▲▲", 2),
    ],
)
def test_a_new_replica_that_sickened_and_is_replaced_counts_as_failed(picture: str, failed: int) -> None:
    deployment = deploying(picture, 3, 1, 0)
    for seconds in range(3):
        deployment = look(deployment, seconds)
    assert rollout_of(deployment).failed_routes == failed


@pytest.mark.parametrize(
    ("picture", "drained", "failed", "progress"),
    [
        ("■▲|■", 0, 0, 60),
        ("■▲|■", 1, 0, 60),
        ("▲■|■", 2, 0, 0),
        ("■■|◇", 2, 0, 0),
        ("■■|▲▲", 2, 1, 0),
        ("■■|△■", 2, 0, 0),
    ],
)
def test_only_what_is_drained_counts_an_old_one_as_progress_and_a_sick_new_one_as_failed(
    picture: str, drained: int, failed: int, progress: float
) -> None:
    deployment = deploying(picture, rollout={"failed_routes": 1, "steps": 4})
    drain = Decision.moved("draining 1", RouteChanges.drain([route_id(drained)]))
    decision = DeployingProvisioningHandler().classified(drain, deployment, at(60))
    rollout = rollout_of(after(decision, at(60)))
    assert (rollout.failed_routes, rollout.steps, rollout.last_progress_at) == (1 + failed, 5, at(progress))


@pytest.mark.parametrize(("weight", "progress"), [(3000, 60), (9000, 0)])
def test_a_weight_that_falls_is_progress_and_one_that_rises_is_none(weight: int, progress: float) -> None:
    retried = deploying("■■■■■■■|■■■■", 10, policy=canary(steps=["5%"]), rollout={"stage": 0, "weight": 8000})
    moved = Decision.moved("the canary gets more or less", RouteChanges(stage=Stage(0, weight)))
    decision = DeployingProvisioningHandler().classified(moved, retried, at(60))
    assert rollout_of(after(decision, at(60))).last_progress_at == at(progress)


def test_the_first_weight_of_a_canary_is_no_progress_as_nothing_has_fallen() -> None:
    begun = deploying("■■■|■", policy=canary(steps=["5%"]))
    moved = Decision.moved("the canary gets 5 %", RouteChanges(stage=Stage(0, 500)))
    rollout = rollout_of(after(DeployingProvisioningHandler().classified(moved, begun, at(60)), at(60)))
    assert rollout.last_progress_at == at(0)
    assert rollout.canary is not None
    assert rollout.canary.weight == 500


def test_on_the_way_back_nobody_is_blamed_for_what_goes() -> None:
    assert rollout_of(look(rolling_back("■■■|▲▲"), 0)).failed_routes == 0


def test_replicas_that_sicken_again_and_again_exhaust_the_failure_budget() -> None:
    deployment = deploying("■■■|", 3, 1, 0)
    for minute in range(20):
        deployment = look(deployment, 60 * minute)
        starting = [route.id for route in deployment.routes if route.status is RouteStatus.PROVISIONING]
        deployment = with_status(deployment, starting, RouteStatus.HEALTHY, at(60 * minute + 1))
        new = [route.id for route in deployment.routes if route.revision_id == V2]
        deployment = with_status(deployment, new, RouteStatus.UNHEALTHY, at(60 * minute + 2))
        if deployment.status == ROLLING_BACK:
            break
    assert (deployment.status, rollout_of(deployment).failed_routes) == (ROLLING_BACK, 3)


@pytest.mark.parametrize(
    ("deployment", "to", "current", "outcome"),
    [
        (deploying("|■■■"), READY, V2, RolloutOutcome.COMPLETED),
        (rolling_back("■■■|"), READY, V1, RolloutOutcome.ROLLED_BACK),
        (deploying("■■■|"), PROVISIONING, V1, None),
    ],
)
def test_a_rollout_ends_with_the_move_of_the_revisions(
    deployment: Deployment, to: object, current: object, outcome: RolloutOutcome | None
) -> None:
    decision = cycle(deployment, NOW)
    left = after(decision, NOW)
    assert (left.status, left.current_revision_id, outcome_of(decision)) == (to, current, outcome)
    assert (left.rollout is None) == (left.deploying_revision_id is None) == (outcome is not None)


def test_the_reason_of_a_rollback_is_that_of_the_decision_that_turned() -> None:
    turning = cycle(deploying("■■■|◇", rollout={"failed_routes": 3}), NOW)
    assert back_reason_of(turning) == turning.reason
    assert turning.reason.startswith("3 new replicas failed, the limit is 3")
    assert back_reason_of(cycle(rolling_back("■■■|■"), NOW)) is None
    assert back_reason_of(cycle(deploying("■■■|"), NOW)) is None


def test_a_phase_starts_when_the_status_changes_and_not_before() -> None:
    assert look(resting("■■", status=READY), 5).phase_started_at == at(5)
    assert look(deploying("■■■|"), 5).phase_started_at == NOW


def test_created_routes_stand_last_and_drained_ones_are_stopping() -> None:
    left = after(cycle(deploying("■■■|"), NOW), NOW)
    assert [(route.status, route.traffic) for route in left.routes] == [
        (RouteStatus.TERMINATING, TrafficStatus.INACTIVE),
        (RouteStatus.HEALTHY, TrafficStatus.ACTIVE),
        (RouteStatus.HEALTHY, TrafficStatus.ACTIVE),
        (RouteStatus.PROVISIONING, TrafficStatus.ACTIVE),
    ]
    assert len({route.id for route in left.routes}) == 4


@pytest.mark.parametrize(
    ("picture", "becomes", "progress_at", "failures"),
    [
        ("■■|◇", RouteStatus.HEALTHY, 40, StartFailures(V2, 2, NOW, came_up_at=at(40))),
        ("■■|▲", RouteStatus.HEALTHY, 0, StartFailures(V2, 2, NOW)),
        ("■■|△", RouteStatus.HEALTHY, 0, StartFailures(V2, 2, NOW)),
        ("■■|■", RouteStatus.UNHEALTHY, 0, StartFailures(V2, 2, NOW)),
        ("■■|◇", RouteStatus.FAILED, 0, StartFailures(V2, 3, at(40))),
    ],
)
def test_only_a_replica_that_comes_up_is_progress_and_ends_the_wait_after_failed_starts(
    picture: str, becomes: RouteStatus, progress_at: float, failures: StartFailures
) -> None:
    deployment = deploying(picture, start_failures=StartFailures(V2, 2, NOW))
    (new,) = (route.id for route in deployment.routes if route.revision_id == V2)
    found = with_status(deployment, [new], becomes, at(40))
    assert rollout_of(found).last_progress_at == at(progress_at)
    assert found.start_failures == failures


def test_a_replica_that_fails_with_its_host_blames_no_revision() -> None:
    deployment = deploying("■■|◇")
    (new,) = (route.id for route in deployment.routes if route.revision_id == V2)
    found = with_status(deployment, [new], RouteStatus.FAILED, at(40), blame=False)
    assert (rollout_of(found).failed_routes, found.start_failures) == (0, None)


def test_an_old_replica_that_leaves_is_progress_though_a_new_one_goes_with_it() -> None:
    drain = Decision.moved("draining 2", RouteChanges.drain([route_id(0), route_id(1)]))
    decision = DeployingProvisioningHandler().classified(drain, deploying("■|▲"), at(60))
    assert rollout_of(after(decision, at(60))).last_progress_at == at(60)
