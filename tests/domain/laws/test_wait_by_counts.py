"""A wait that is told by counting is the one that looking at each route would tell."""

from collections.abc import Iterable

from hypothesis import example, given

from domain.cycle.transitions import Glimpse, Wait
from domain.cycle.writes import turns_clock
from domain.handlers.deploying import DeployingProvisioningHandler
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, Route, RouteCounts
from domain.model.states import RouteStatus, TrafficStatus
from tests.support.pictures.pictures import NOW, PROVISIONING, blue_green, deploying
from tests.support.pictures.snapshots import Case, cases

HANDLER = DeployingProvisioningHandler()


def counted(routes: Iterable[Route]) -> RouteCounts:
    live = [route for route in routes if route.is_active]
    return RouteCounts(
        starting=sum(route.status is RouteStatus.PROVISIONING for route in live),
        healthy=sum(route.status is RouteStatus.HEALTHY for route in live),
        idle=sum(route.traffic is TrafficStatus.INACTIVE for route in live),
    )


def glance(deployment: Deployment, counts: RouteCounts) -> Wait | None:
    rollout = deployment.rollout
    assert rollout is not None
    stands = any(each is not None for each in (deployment.paused_at, deployment.hold, rollout.clock_stopped_at))
    return HANDLER.glance(Glimpse(rollout, rollout.policy, deployment.desired_replicas, counts, stands), NOW)


@given(cases())
@example(Case(deploying("|■◇", 1, 1, 0)))
@example(Case(deploying("■~|◇", 2, 0, 1, spec={"count_stopping": True})))
def test_counts_tell_the_same_wait_or_nothing(case: Case) -> None:
    deployment = case.deployment
    if deployment.rollout is None or deployment.status != PROVISIONING:
        return
    counts = counted(route for route in deployment.routes if route.revision_id == deployment.deploying_revision_id)
    told = glance(deployment, counts)
    if told is not None:
        decided = cycle(deployment, NOW)
        assert not decided.changes_anything
        assert not turns_clock(decided)
        assert told == (decided.reason, decided.due_at)


def test_a_wave_that_is_coming_up_is_told_by_counts() -> None:
    told = glance(deploying("■■|◇"), RouteCounts(starting=1, healthy=0, idle=0))
    assert told is not None
    assert told.reason == "waiting: 1 new starting; 0 of 3 ready"


def test_whatever_takes_the_routes_or_the_clock_is_not() -> None:
    starting = RouteCounts(starting=1, healthy=0, idle=0)
    for deployment, counts in (
        (deploying("■■|◇", spec={"pacing": "continuous"}), starting),
        (deploying("■■|◇", spec={"min_ready_seconds": 1}), starting),
        (deploying("■■|◇", policy=blue_green()), starting),
        (deploying("■■|◇", paused_at=NOW), starting),
        (deploying("■■|◇", rollout={"clock_stopped_at": NOW}), starting),
        (deploying("■■|□◇"), RouteCounts(starting=1, healthy=1, idle=1)),
        (deploying("■■|■"), RouteCounts(starting=0, healthy=1, idle=0)),
    ):
        assert glance(deployment, counts) is None


def test_a_wait_that_is_over_is_looked_at_with_its_routes() -> None:
    starting = RouteCounts(starting=1, healthy=0, idle=0)
    assert glance(deploying("■■|◇"), starting) is not None
    assert glance(deploying("■■|◇", rollout={"deadline": NOW}), starting) is None
    assert glance(deploying("■■|◇", rollout={"failed_routes": 3}), starting) is None
