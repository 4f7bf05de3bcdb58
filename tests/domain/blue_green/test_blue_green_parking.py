"""Blue is parked after the promotion: an instant way back, for as long as the delay."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.handlers.dispatch import cycle
from domain.handlers.scaling import ScalingHandler
from domain.model.deployment import Deployment
from domain.model.picture import picture as drawn
from domain.model.states import RouteStatus, Verdict
from domain.planning.simulator import with_status
from domain.steering.activation import Activation, ActivationRequest, decide_activation
from tests.support.pictures.blue_green import AUTO, MANUAL, PARKING, of_v3, step
from tests.support.pictures.pictures import (
    NOW,
    PROVISIONING,
    READY,
    SCALING,
    V1,
    V2,
    deploying,
    happens,
    resting,
    rolling_back,
    rolling_update,
    rollout_of,
    route_id,
)
from tests.support.pictures.simulation import applied, world_of


def test_with_a_scale_down_delay_blue_is_parked_and_drained_when_its_time_is_over() -> None:
    deployment = deploying("■■■|□□□", policy=PARKING)
    assert step(deployment) == "completed: promote □□□, park ■■■"
    world = world_of(deployment)
    world.run(seconds=59)
    assert (world.deployment.status, drawn(world.deployment.routes, V2, None)) == (READY, "□□□|■■■")
    assert {route.parked_until for route in world.deployment.routes} == {None, NOW + timedelta(seconds=60)}
    world.run(seconds=90)
    assert drawn(world.deployment.routes, V2, None) == "■■■"
    assert world.created == 0


def test_activating_a_parked_blue_again_is_an_instant_way_back_without_a_start() -> None:
    parked = world_of(deploying("■■■|□□□", policy=PARKING))
    parked.run(seconds=10)
    back = replace(
        parked.deployment,
        status=PROVISIONING,
        deploying_revision_id=V1,
        rollout=replace(rollout_of(PARKING), from_revision_id=V2, to_revision_id=V1),
    )
    decision = cycle(back, parked.at)
    assert (decision.verdict, decision.changes.created) == (Verdict.SUCCESS, 0)
    assert set(decision.changes.promote_route_ids) == {route_id(0), route_id(1), route_id(2)}
    after = applied(decision, parked.at)
    assert (after.current_revision_id, drawn(after.routes, V1, None)) == (V1, "□□□|■■■")
    assert [route.parked_until for route in after.routes if route.revision_id == V1] == [None] * 3


@pytest.mark.parametrize(
    ("picture", "n", "expected"),
    [("▫▫▫|■■■", 3, "completed"), ("▫▫▫|■■", 3, "create 1"), ("■▫▫|■■■", 3, "drain ■"), ("▫▫|■■■■", 3, "drain ■")],
)
def test_at_rest_parked_routes_count_in_no_budget(picture: str, n: int, expected: str) -> None:
    deployment = resting(picture, n, SCALING)
    assert happens(deployment, ScalingHandler().decide(deployment, NOW)) == expected


def test_parked_routes_leave_the_ceiling_of_the_next_rollout_alone() -> None:
    deployment = of_v3(deploying("▫▫▫■■■|", policy=AUTO), 0, 1, 2)
    assert step(deployment) == "create 3"


def test_a_parked_set_is_nothing_that_an_activation_would_have_to_converge() -> None:
    ready = resting("▫▫▫|■■■", status=READY)
    request = ActivationRequest(V2, "v2", None, AUTO)
    assert decide_activation(ready, request) is Activation.ALREADY_ACTIVE
    assert decide_activation(resting("▫□|■■■", status=READY), request) is Activation.CONVERGING


def test_a_parked_replica_that_fails_is_not_replaced() -> None:
    deployment = with_status(resting("▫▫▫|■■■", status=READY), [route_id(0)], RouteStatus.FAILED, NOW)
    decision = cycle(deployment, NOW)
    assert (decision.verdict, decision.due_at) == (Verdict.SKIPPED, NOW + timedelta(minutes=1))


@pytest.mark.parametrize(
    "deployment",
    [
        deploying("▫■■|□□", 2, policy=MANUAL),
        deploying("▫■■|□◌", 2, policy=MANUAL),
        deploying("▫■|", 1, policy=rolling_update(1, 0)),
        rolling_back("▫■|", 2),
        resting("▫|■", 1, READY),
        resting("▫|■◇", 2, SCALING),
    ],
)
def test_whoever_decides_looks_again_when_the_time_of_a_parked_replica_is_over(deployment: Deployment) -> None:
    assert cycle(of_v3(deployment, 0), NOW).due_at == NOW + timedelta(minutes=1)
