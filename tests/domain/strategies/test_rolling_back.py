"""The way back: the same converge, with the current revision as its target and the budget of the rollout."""

from datetime import timedelta
from uuid import UUID

import pytest

from domain.cycle.transitions import RevisionMove
from domain.handlers.deploying import DeployingRollingBackHandler
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, StartFailures
from domain.model.states import RouteStatus, Verdict
from domain.steering.activation import Activation, ActivationRequest, decide_activation
from tests.support.pictures.pictures import (
    NOW,
    READY,
    ROLLING_BACK,
    V1,
    V2,
    deploying,
    happens,
    rolling_back,
    rolling_update,
)
from tests.support.pictures.simulation import applied, world_of


def going_back(deployment: Deployment) -> str:
    return happens(deployment, DeployingRollingBackHandler().decide(deployment, NOW))


def test_with_nothing_to_add_a_sick_replica_goes_before_its_replacement_comes() -> None:
    assert going_back(rolling_back("■■▲|", 3, s=0, u=1)) == "drain ▲"
    assert going_back(rolling_back("■■|", 3, s=0, u=1)) == "create 1"
    assert going_back(rolling_back("▲|", 1, s=0, u=1)) == "drain ▲"


@pytest.mark.parametrize(
    ("picture", "s", "u", "expected"),
    [
        ("■■■|", 1, 1, "completed"),
        ("■■■|◇", 1, 1, "drain ◇"),
        ("■■|◇", 1, 1, "create 1, drain ◇"),
        ("■■|■■", 1, 1, "drain ■■"),
        ("■■|■", 1, 1, "create 1, drain ■"),
        ("■■|■", 1, 0, "create 1"),
        ("■■|◇◇", 1, 0, "drain ◇"),
        ("|■■■", 1, 1, "create 1, drain ■"),
        ("|■■■", 0, 1, "drain ■"),
        ("|■■", 0, 1, "create 1"),
        ("■■◇|", 1, 1, "wait"),
        ("■■|▲", 1, 1, "create 1, drain ▲"),
        ("□□□|■■■", 1, 1, "promote □□□, drain ■"),
        ("■■■|□□□", 1, 1, "drain □□□"),
        ("■■□|", 1, 1, "promote □"),
    ],
)
def test_rolling_back(picture: str, s: int, u: int, expected: str) -> None:
    assert going_back(rolling_back(picture, 3, s, u)) == expected


@pytest.mark.parametrize(
    ("picture", "s", "u", "not_counted", "counted"),
    [
        ("■■|~~", 1, 1, "create 1", "wait"),
        ("■■|~", 1, 1, "create 1", "create 1"),
        ("■~|■", 1, 1, "create 2", "create 1"),
        ("■|~~~", 0, 1, "create 2", "wait"),
        ("|■~~", 0, 1, "create 2", "wait"),
        ("■■■|~", 1, 1, "completed", "completed"),
    ],
)
def test_on_the_way_back_stopping_replicas_count_when_the_policy_says_so(
    picture: str, s: int, u: int, not_counted: str, counted: str
) -> None:
    assert going_back(rolling_back(picture, 3, s, u)) == not_counted
    assert going_back(rolling_back(picture, 3, s, u, spec={"count_stopping": True})) == counted


def test_trap_a_rollback_is_a_rollout_and_ends_only_when_the_current_revision_is_complete_and_alone() -> None:
    world = world_of(rolling_back("■|■■", 3, 1, 1))
    world.run(seconds=60)
    assert world.deployment.status == READY
    assert world.deployment.current_revision_id == V1
    assert world.deployment.deploying_revision_id is None
    assert [(route.revision_id, route.status) for route in world.deployment.routes] == [(V1, RouteStatus.HEALTHY)] * 3
    assert [look.decision.to for look in world.looks].count(READY) >= 1


def test_trap_a_rollback_never_stops_the_side_that_serves() -> None:
    assert going_back(rolling_back("■■■|□□□")) == "drain □□□"
    assert going_back(rolling_back("□□□|■■■")) == "promote □□□, drain ■"
    assert going_back(rolling_back("|■■■", u=0)) == "create 1"


def test_a_size_that_came_with_the_revision_goes_with_it_the_moment_it_turns_back() -> None:
    failed = {"desired_at_start": 3, "desired_with_revision": 8, "failed_routes": 99}
    turned = cycle(deploying("■■■|■■", 8, 1, 0, rollout=failed), NOW)
    assert (turned.to, turned.desired_replicas) == (ROLLING_BACK, 3)
    world = world_of(applied(turned, NOW))
    world.run(seconds=60)
    assert (world.deployment.status, world.deployment.desired_replicas, world.created) == (READY, 3, 0)


def test_a_rollback_has_no_deadline_and_stays_until_it_is_done() -> None:
    deployment = rolling_back("■|■■", rollout={"deadline": NOW - timedelta(days=1), "failed_routes": 99})
    decision = cycle(deployment, NOW)
    assert (decision.verdict, decision.to) == (Verdict.NEED_RETRY, ROLLING_BACK)


@pytest.mark.parametrize(
    ("picture", "failed", "ends"),
    [
        ("|", StartFailures(V1, 3, NOW), True),
        ("|~~", StartFailures(V1, 3, NOW), True),
        ("|", StartFailures(V1, 2, NOW), False),
        ("|", StartFailures(V2, 9, NOW), False),
        ("|", StartFailures(V1, 9, NOW, came_up_at=NOW), False),
        ("◇|", StartFailures(V1, 3, NOW), False),
        ("■|", StartFailures(V1, 3, NOW), False),
        ("|■", StartFailures(V1, 3, NOW), False),
        ("|", None, False),
    ],
)
def test_a_rollback_to_what_does_not_come_up_ends_when_no_replica_is_left(
    picture: str,
    failed: StartFailures | None,
    ends: bool,  # noqa: FBT001
) -> None:
    decision = cycle(rolling_back(picture, start_failures=failed), NOW)
    assert (decision.to == READY) is ends
    assert (decision.revision is RevisionMove.CLEAR) is ends
    if ends:
        said = "nothing to go back to: 3 starts of it failed in a row"
        assert (decision.reason, decision.degraded_reason, decision.changes.created) == (said, said, 0)
        assert activated(applied(decision, NOW), V2) == Activation.BEGUN


def test_a_rollout_between_two_that_do_not_start_ends_and_the_next_one_begins() -> None:
    world = world_of(deploying("|", start_failures=StartFailures(V1, 3, NOW)), starts_fail=True)
    world.run(seconds=60)
    assert world.deployment.rollout is None
    assert activated(world.deployment, V2) == Activation.BEGUN


def activated(deployment: Deployment, revision: UUID) -> Activation:
    return decide_activation(deployment, ActivationRequest(revision, "v3", None, rolling_update()))


def test_a_paused_rollback_waits_for_a_person() -> None:
    decision = DeployingRollingBackHandler().decide(rolling_back("■|■■", paused_at=NOW), NOW)
    assert (decision.verdict, decision.clock_stopped) == (Verdict.SKIPPED, True)


@pytest.mark.parametrize(("s", "u"), [(1, 1), (0, 1), (1, 0), (3, 0), (3, 3)])
@pytest.mark.parametrize("n", [0, 1, 3, 5])
@pytest.mark.parametrize("picture", ["■■■|", "|■■■", "▲▲▲|■", "▲▲▲|▲", "◇◇|◇", "□□□|■■■", "■■|◇◇", "▲|"])
def test_a_rollback_ends_without_ever_needing_the_tick(picture: str, n: int, s: int, u: int) -> None:
    world = world_of(rolling_back(picture, n, s, u), start_seconds=2)
    world.run(seconds=300)
    assert world.deployment.status == READY
    assert [(r.revision_id, r.status) for r in world.deployment.routes] == [(V1, RouteStatus.HEALTHY)] * n


def test_what_is_parked_stays_while_the_way_back_from_it_is_paused() -> None:
    paused = rolling_back("■■■|▫▫", paused_at=NOW)
    assert happens(paused, DeployingRollingBackHandler().decide(paused, NOW)) == "wait"
