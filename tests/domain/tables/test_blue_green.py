"""Blue-green, one cycle at a time and whole: a picture, blue left of the bar and green right of it; what happens."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.activation import Activation, ActivationRequest, decide_activation
from domain.evaluator import EVALUATOR
from domain.handlers.deploying_rolling_back import DeployingRollingBackHandler
from domain.handlers.scaling import ScalingHandler
from domain.model import Deployment, RouteStatus, StartFailures, TrafficStatus, Verdict
from domain.picture import picture as drawn
from domain.policy import DeploymentPolicy
from domain.strategies.budget import Budget
from domain.transitions import RevisionMove
from tests.support.pictures import (
    NOW,
    PROVISIONING,
    READY,
    ROLLING_BACK,
    SCALING,
    V1,
    V2,
    V3,
    blue_green,
    deploying,
    happens,
    resting,
    rolling_back,
    rolling_update,
    rollout_of,
    route_id,
)
from tests.support.simulation import World, all_started, applied, cycle, with_status

AUTO = blue_green(auto_promote=True)
MANUAL = blue_green()
DELAYED = blue_green(auto_promote=True, promote_delay_seconds=20)
PARKING = blue_green(auto_promote=True, scale_down_delay_seconds=60)
IN_GRACE, PAST_GRACE = 5.0, 31.0


def step(deployment: Deployment) -> str:
    return happens(deployment, EVALUATOR.evaluate_one(deployment, NOW))


def asked(deployment: Deployment) -> Deployment:
    assert deployment.rollout is not None
    return replace(deployment, rollout=replace(deployment.rollout, promote_requested=True))


def of_v3(deployment: Deployment, *numbers: int) -> Deployment:
    """The same, with these routes of a third revision."""
    chosen = {route_id(number) for number in numbers}
    routes = (replace(route, revision_id=V3) if route.id in chosen else route for route in deployment.routes)
    return replace(deployment, routes=tuple(routes))


@pytest.mark.parametrize(
    ("picture", "n", "expected"),
    [
        # the way through
        ("■■■|", 3, "create 3"),
        ("■■■|◌◌◌", 3, "wait"),
        ("■■■|□□◌", 3, "wait"),
        ("■■■|□□□", 3, "completed: promote □□□, drain ■■■"),
        ("■|", 1, "create 1"),
        ("■|□", 1, "completed: promote □, drain ■"),
        # none wanted
        ("|", 0, "completed"),
        ("■■|", 0, "completed: drain ■■"),
        # green loses some before it is complete, and after
        ("■■■|□□", 3, "create 1"),
        ("■■■|□□▲", 3, "drain ▲"),
        ("■■■|□▲▲", 3, "drain ▲▲"),
        ("■■■|□▲", 3, "create 1, drain ▲"),
        ("■■■|□", 3, "create 2"),
        # blue loses some: replaced, whatever green does, and as long as it is not about to go
        ("■■|", 3, "create 4"),
        ("■■|◌◌◌", 3, "create 1"),
        ("■■|□□", 3, "create 2"),
        ("■■◇|□□", 3, "create 1"),
        ("■■|□□□", 3, "completed: promote □□□, drain ■■"),
        ("|□□□", 3, "completed: promote □□□"),
        ("■▲■|□□□", 3, "completed: promote □□□, drain ▲■■"),
        ("■▲■|◌◌◌", 3, "drain ▲"),
        # desired changes in the middle: up, then down before and after green exists
        ("■■■|□□□", 5, "create 4"),
        ("■■■|◌◌◌", 5, "create 2"),
        ("■■■■■|", 3, "create 1, drain ■■"),
        ("■■■■■|", 2, "drain ■■■"),
        ("■■■■■|◌◌◌◌◌", 2, "drain ■■■"),
        ("■■■■■|□□□□□", 2, "completed: promote □□□□□, drain ■■■■■"),
        ("■■|□□□", 2, "completed: promote □□□, drain ■■"),
        # new ones that are in traffic already, from a rolling update that was superseded by the same revision
        ("■■|■", 3, "create 3"),
        ("■■■|■□□", 3, "completed: promote □□, drain ■■■"),
        # what is on its way out does not count
        ("■■■~|~~", 3, "create 3"),
    ],
)
def test_blue_green(picture: str, n: int, expected: str) -> None:
    assert step(deploying(picture, n, policy=AUTO, status_for=PAST_GRACE)) == expected


@pytest.mark.parametrize(
    ("picture", "before", "n", "expected"),
    [
        # more than before: blue stays as it is
        ("■■|", 2, 3, "create 3"),
        ("■■|◌◌◌", 2, 3, "wait"),
        ("■■|□□□", 2, 3, "completed: promote □□□, drain ■■"),
        ("■|◌◌◌", 2, 3, "create 1"),
        ("■■|□□", 2, 3, "create 1"),
        # fewer than before: not one of blue goes before the promotion
        ("■■■|", 3, 1, "create 1"),
        ("■■■|◌", 3, 1, "wait"),
        ("■■|◌", 3, 1, "create 1"),
        ("■■■■|◌", 3, 1, "drain ■"),
        ("■■■|□", 3, 1, "completed: promote □, drain ■■■"),
        # none, and from none
        ("■■|", 2, 0, "completed: drain ■■"),
        ("|", 0, 2, "create 2"),
    ],
)
def test_a_size_that_comes_with_the_revision_is_greens_and_blue_keeps_its_own(
    picture: str, before: int, n: int, expected: str
) -> None:
    deployment = deploying(picture, n, policy=AUTO, status_for=PAST_GRACE, rollout={"desired_at_start": before})
    assert step(deployment) == expected


def test_both_sizes_together_are_the_ceiling_and_a_smaller_green_is_the_floor_of_the_promotion() -> None:
    for before, n, budget in ((3, 5, Budget(5, 8, 3)), (3, 1, Budget(1, 4, 1)), (2, 2, Budget(2, 4, 2))):
        deployment = deploying("■■■|", n, policy=AUTO, rollout={"desired_at_start": before})
        assert EVALUATOR.budget(deployment) == budget


def test_the_way_back_is_to_blue_at_its_own_size() -> None:
    world = World(rolling_back("■■■|□", 3, policy=AUTO))
    world.run(seconds=60)
    assert (world.deployment.status, world.deployment.desired_replicas, world.created) == (READY, 3, 0)
    assert [route.id for route in world.deployment.routes] == [route_id(0), route_id(1), route_id(2)]


@pytest.mark.parametrize(
    ("picture", "not_counted", "counted"),
    [
        # what green lost is replaced when it is gone, and in what blue's and green's places together leave
        ("■■■|□□~", "create 1", "wait"),
        ("■■■|□□~~", "create 1", "wait"),
        ("■■■|~~~", "create 3", "wait"),
        ("■■■|~", "create 3", "create 2"),
        # and what blue lost
        ("■■~|□□", "create 2", "create 1"),
        ("■■~|◌◌◌", "create 1", "wait"),
        ("■■|□□~", "create 2", "create 1"),
        ("■■|◌◌◌~", "create 1", "wait"),
        # the promotion waits for no stop
        ("■■■~|□□□~", "completed: promote □□□, drain ■■■", "completed: promote □□□, drain ■■■"),
    ],
)
def test_replicas_that_are_stopping_count_when_the_policy_says_so(picture: str, not_counted: str, counted: str) -> None:
    assert step(deploying(picture, policy=AUTO)) == not_counted
    assert step(deploying(picture, policy=blue_green(auto_promote=True, count_stopping=True))) == counted


def test_a_wait_for_a_stopping_replica_says_so_with_its_inequality() -> None:
    policy = blue_green(count_stopping=True)
    green = EVALUATOR.evaluate_one(deploying("■■■|□□~", policy=policy), NOW)
    assert "no room to create 1 (5 live + 1 stopping of at most 6)" in green.reason
    blue = EVALUATOR.evaluate_one(deploying("■■~|□□□", policy=policy), NOW)
    assert blue.waits_for_person
    assert "blue: 2 of 3 ready" in blue.reason
    assert "2 live + 1 stopping of at most 3" in blue.reason


def test_only_what_happens_is_told() -> None:
    for picture, said in (
        ("■■■|", "creating 3 green out of traffic (0 of 3 green healthy)"),
        ("■■■|□□▲", "draining 1 green (2 of 3 green healthy)"),
        ("■■■|□▲", "creating 1 green out of traffic, draining 1 green (1 of 3 green healthy)"),
    ):
        assert EVALUATOR.evaluate_one(deploying(picture, policy=AUTO, status_for=PAST_GRACE), NOW).reason == said


@pytest.mark.parametrize(
    ("picture", "expected"),
    [("■■■|□□▲", "wait"), ("■■■|□□□▲", "completed: promote □□□, drain ■■■"), ("■▲■|◌◌◌", "wait")],
)
def test_a_sick_replica_has_a_grace(picture: str, expected: str) -> None:
    deployment = deploying(picture, policy=AUTO, status_for=IN_GRACE)
    decision = EVALUATOR.evaluate_one(deployment, NOW)
    assert happens(deployment, decision) == expected
    if expected == "wait":
        assert decision.recheck_at == NOW + timedelta(seconds=25)


@pytest.mark.parametrize("policy", [MANUAL, DELAYED, PARKING, AUTO])
def test_green_comes_up_out_of_traffic(policy: DeploymentPolicy) -> None:
    (spec,) = EVALUATOR.evaluate_one(deploying("■■■|", policy=policy), NOW).changes.rollout_specs
    assert (spec.revision_id, spec.count, spec.traffic) == (V2, 3, TrafficStatus.INACTIVE)


def test_what_blue_lost_comes_back_into_traffic_beside_it() -> None:
    specs = EVALUATOR.evaluate_one(deploying("■■|", policy=AUTO), NOW).changes.rollout_specs
    assert {(one.revision_id, one.count, one.traffic) for one in specs} == {
        (V2, 3, TrafficStatus.INACTIVE),
        (V1, 1, TrafficStatus.ACTIVE),
    }


def test_promotion_is_one_decision_from_one_snapshot_with_swap_and_ready() -> None:
    one = cycle(deploying("■■■|□□□", policy=AUTO), NOW)
    assert (one.verdict, one.to, one.revision) == (Verdict.SUCCESS, READY, RevisionMove.SWAP)
    assert happens(one.deployment, EVALUATOR.evaluate_one(one.deployment, NOW)).endswith("promote □□□, drain ■■■")
    after = applied(one, NOW)
    assert (after.current_revision_id, after.rollout, drawn(after.routes, V2, None)) == (V2, None, "■■■")


@pytest.mark.parametrize(
    ("status_for", "expected"), [(5, "wait"), (19, "wait"), (20, "completed: promote □□□, drain ■■■")]
)
def test_the_promote_delay_counts_from_the_newest_healthy_green(status_for: float, expected: str) -> None:
    deployment = deploying("■■■|□◌□", policy=DELAYED)
    deployment = with_status(deployment, [route_id(4)], RouteStatus.HEALTHY, NOW - timedelta(seconds=status_for))
    decision = EVALUATOR.evaluate_one(deployment, NOW)
    assert happens(deployment, decision) == expected
    if expected == "wait":
        assert decision.recheck_at == NOW + timedelta(seconds=20 - status_for)
        assert f"promoted in {20 - status_for:.0f} s" in decision.reason


def test_with_no_replica_wanted_the_promote_delay_waits_for_nobody() -> None:
    assert step(deploying("■|", 0, policy=DELAYED)) == "completed: drain ■"


def test_a_manual_promotion_waits_for_a_person_without_a_deadline() -> None:
    deployment = deploying("■■■|□□□", policy=MANUAL)
    one = cycle(deployment, NOW)
    assert (one.verdict, one.clock_stopped, one.due_at) == (Verdict.SKIPPED, True, None)
    assert "'rollway promote web'" in one.reason
    assert step(asked(deployment)) == "completed: promote □□□, drain ■■■"


def test_trap_a_manual_promotion_is_never_rolled_back_by_a_generic_timeout() -> None:
    deployment = deploying("■■■|□□□", policy=MANUAL)
    for day in range(3):
        now = NOW + timedelta(days=day, seconds=5)
        one = cycle(deployment, now)
        assert (one.to, one.clock_stopped) == (PROVISIONING, True)
        deployment = applied(one, now)
    assert cycle(asked(deployment), NOW + timedelta(days=3)).to == READY


def test_while_it_waits_for_a_person_blue_is_healed_and_no_clock_runs() -> None:
    deployment = applied(cycle(deploying("■■■|□□□", policy=MANUAL), NOW), NOW)
    late = NOW + timedelta(days=2)
    deployment = with_status(deployment, [route_id(0)], RouteStatus.FAILED, late)
    one = cycle(deployment, late)
    assert (one.verdict, one.clock_stopped, one.due_at) == (Verdict.SKIPPED, True, late + timedelta(seconds=2))
    late += timedelta(seconds=2)
    one = cycle(applied(one, late), late)
    assert (one.verdict, one.to, one.clock_stopped) == (Verdict.NEED_RETRY, PROVISIONING, True)
    assert {(spec.revision_id, spec.traffic) for spec in one.changes.rollout_specs} == {(V1, TrafficStatus.ACTIVE)}
    deployment = all_started(applied(one, late), late)
    assert drawn(deployment.routes, V1, V2) == "■■■|□□□"
    assert cycle(deployment, late + timedelta(days=2)).verdict is Verdict.SKIPPED


def test_a_sick_blue_is_looked_at_when_its_grace_ends_even_while_it_waits_for_a_person() -> None:
    deployment = deploying("■▲■|□□□", policy=MANUAL, status_for=IN_GRACE)
    assert cycle(deployment, NOW).due_at == NOW + timedelta(seconds=25)
    assert step(deploying("■▲■|□□□", policy=MANUAL, status_for=PAST_GRACE)) == "drain ▲"


def test_a_sick_green_too_many_is_looked_at_when_its_grace_ends_even_while_it_waits_for_a_person() -> None:
    deployment = deploying("■|□▲", 1, policy=MANUAL, status_for=IN_GRACE)
    assert cycle(deployment, NOW).due_at == NOW + timedelta(seconds=25)
    assert step(deploying("■|□▲", 1, policy=MANUAL, status_for=PAST_GRACE)) == "drain ▲"


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


def test_a_promotion_that_was_asked_for_early_comes_as_soon_as_green_is_healthy() -> None:
    for policy in (MANUAL, DELAYED):
        deployment = asked(deploying("■■■|□□◌", policy=policy, status_for=1))
        assert step(deployment) == "wait"
        assert step(all_started(deployment, NOW)) == "completed: promote □□□, drain ■■■"


def test_green_that_sickens_after_it_was_complete_is_not_promoted_but_repaired() -> None:
    complete = deploying("■■■|□□□", policy=MANUAL)
    sick = asked(with_status(complete, [route_id(3)], RouteStatus.UNHEALTHY, NOW))
    assert step(sick) == "wait"
    assert step(asked(deploying("■■■|▲□□", policy=MANUAL))) == "drain ▲"


def test_every_green_failed_goes_back_at_once() -> None:
    deployment = deploying("■■■|◌◌◌", policy=AUTO)
    for number in (3, 4):
        deployment = with_status(deployment, [route_id(number)], RouteStatus.FAILED, NOW)
        assert step(deployment) == "wait"
    one = cycle(with_status(deployment, [route_id(5)], RouteStatus.FAILED, NOW), NOW)
    assert (one.verdict, one.to) == (Verdict.GIVE_UP, ROLLING_BACK)
    assert cycle(applied(one, NOW), NOW).to == READY


def test_every_green_failed_goes_back_at_once_whatever_the_failure_budget_allows() -> None:
    assert step(deploying("■|", 1, policy=AUTO, rollout={"failed_routes": 1})) == "give up"
    assert step(deploying("■■|", 2, policy=AUTO, rollout={"failed_routes": 1})) == "create 2"


def test_a_partial_failure_is_repaired() -> None:
    deployment = deploying("■■■|□□◌", policy=AUTO)
    deployment = with_status(deployment, [route_id(5)], RouteStatus.FAILED, NOW)
    world = World(deployment)
    world.run(seconds=60)
    assert (world.deployment.status, world.deployment.current_revision_id) == (READY, V2)
    assert world.created == 1


def test_a_blue_that_cannot_start_any_more_does_not_keep_green_from_coming() -> None:
    failing = StartFailures(V1, in_a_row=9, last_at=NOW)
    deployment = deploying("■|", 3, policy=AUTO, start_failures=failing)
    assert step(deployment) == "create 3"
    assert step(replace(deployment, routes=all_started(deploying("|◌◌◌", policy=AUTO), NOW).routes)).startswith(
        "completed"
    )


def test_what_a_superseded_rollout_left_out_of_traffic_is_drained_and_what_serves_goes_with_blue() -> None:
    left = of_v3(deploying("■■■□□|", policy=AUTO), 3, 4)
    assert step(left) == "create 1, drain □□"
    serving = of_v3(deploying("■■■|□□□", policy=AUTO), 2)
    assert step(serving) == "completed: promote □□□, drain ■■■"
    assert step(of_v3(deploying("■■■|◌◌◌", policy=AUTO), 2)) == "wait"


def test_an_abort_in_the_middle_drains_green_at_once_and_touches_no_blue() -> None:
    for green in ("◌◌◌", "□□◌", "□□□", "▲◌□"):
        deployment = rolling_back(f"■■■|{green}", policy=AUTO)
        decision = DeployingRollingBackHandler().decide(deployment, NOW)
        assert set(decision.changes.drain_route_ids) == {route_id(3), route_id(4), route_id(5)}
        assert not decision.changes.created
    world = World(rolling_back("■■■|□□◌", policy=MANUAL))
    world.run(seconds=60)
    assert (world.deployment.status, world.created) == (READY, 0)
    assert [route.id for route in world.deployment.routes] == [route_id(0), route_id(1), route_id(2)]


def test_trap_a_blue_green_rollback_never_stops_the_side_that_serves() -> None:
    for picture, expected in (
        ("■■■|□□□", "drain □□□"),
        ("■■|□□□", "create 1, drain □□□"),
        ("|■■■", "create 3"),
        ("◇◇◇|■■■", "wait"),
        ("■■■|■■■", "drain ■■■"),
    ):
        deployment = rolling_back(picture, policy=AUTO)
        assert happens(deployment, DeployingRollingBackHandler().decide(deployment, NOW)) == expected


def test_with_a_scale_down_delay_blue_is_parked_and_drained_when_its_time_is_over() -> None:
    deployment = deploying("■■■|□□□", policy=PARKING)
    assert step(deployment) == "completed: promote □□□, park ■■■"
    world = World(deployment)
    world.run(seconds=59)
    assert (world.deployment.status, drawn(world.deployment.routes, V2, None)) == (READY, "□□□|■■■")
    assert {route.parked_until for route in world.deployment.routes} == {None, NOW + timedelta(seconds=60)}
    world.run(seconds=90)
    assert drawn(world.deployment.routes, V2, None) == "■■■"
    assert world.created == 0


def test_activating_a_parked_blue_again_is_an_instant_way_back_without_a_start() -> None:
    parked = World(deploying("■■■|□□□", policy=PARKING))
    parked.run(seconds=10)
    back = replace(
        parked.deployment,
        status=PROVISIONING,
        deploying_revision_id=V1,
        rollout=replace(rollout_of(PARKING), from_revision_id=V2, to_revision_id=V1),
    )
    one = cycle(back, parked.now)
    assert (one.verdict, one.changes.created) == (Verdict.SUCCESS, 0)
    assert set(one.changes.promote_route_ids) == {route_id(0), route_id(1), route_id(2)}
    after = applied(one, parked.now)
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
    one = cycle(deployment, NOW)
    assert (one.verdict, one.due_at) == (Verdict.SKIPPED, NOW + timedelta(minutes=1))


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("policy", [AUTO, DELAYED, PARKING])
@pytest.mark.parametrize("picture", ["■■■|", "■■■|◌", "▲▲▲|", "◇◇|□", "■■■■■■|", "□□□|■"])
def test_a_rollout_ends_without_ever_needing_the_tick(picture: str, n: int, policy: DeploymentPolicy) -> None:
    world = World(deploying(picture, n, policy=policy), start_seconds=2)
    world.run(seconds=300)
    assert [(r.revision_id, r.is_serving) for r in world.deployment.routes] == [(V2, True)] * n
    assert world.deployment.status == READY
