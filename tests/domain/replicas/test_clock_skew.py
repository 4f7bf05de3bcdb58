"""Deadlines, clocks that stand still, and when the next look is due."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from domain.cycle.transitions import ClassifiedDecision, classify
from domain.cycle.writes import turns_clock
from domain.handlers.deploying import DeployingProvisioningHandler
from domain.handlers.dispatch import cycle
from domain.model.decision import Decision, RouteChanges, Waits, WaitsFor
from domain.model.deployment import Deployment, StartFailures
from domain.model.policy import RolloutLimits
from domain.model.states import Verdict
from tests.support.pictures.pictures import NOW, PROVISIONING, READY, ROLLING_BACK, V2, deploying, resting
from tests.support.pictures.simulation import applied

MOVED = Decision.moved("creating 1", RouteChanges.create(V2, 1))
WAIT = Decision.wait(Waits(WaitsFor.TIME, "waiting"))
PAST_DEADLINE = NOW + timedelta(minutes=30)


def rolled(decision: Decision, now: datetime = NOW, deployment: Deployment | None = None) -> ClassifiedDecision:
    before = deployment or deploying("■■|■")
    handler = DeployingProvisioningHandler()
    return classify(decision, before, handler.transitions, handler.bounds(before), now)


def test_the_progress_timeout_counts_from_the_last_progress() -> None:
    limits = RolloutLimits(progress_timeout_seconds=60)
    slow = deploying("■■|■", limits=limits, rollout={"last_progress_at": NOW + timedelta(seconds=100)})
    assert rolled(WAIT, NOW + timedelta(seconds=159), slow).verdict is Verdict.SKIPPED
    classified = rolled(WAIT, NOW + timedelta(seconds=160), slow)
    assert classified.verdict is Verdict.EXPIRED
    assert "without progress" in classified.reason


def test_trap_the_clock_is_the_rollouts_own_and_a_wait_moves_nothing() -> None:
    deployment = deploying("■■|◇")
    for minute in range(30):
        classified = cycle(deployment, NOW + timedelta(minutes=minute))
        assert (classified.verdict, classified.changes_anything) == (Verdict.SKIPPED, False)
        assert classified.due_at == PAST_DEADLINE
        deployment = applied(classified, NOW + timedelta(minutes=minute))
    assert cycle(deployment, PAST_DEADLINE).to == ROLLING_BACK


def test_trap_a_second_rollout_does_not_inherit_the_clock_of_the_first() -> None:
    second = deploying("■■|◇", phase_started_at=NOW - timedelta(days=9), rollout={"started_at": NOW})
    assert cycle(second, NOW + timedelta(minutes=29)).verdict is Verdict.SKIPPED


def test_trap_waiting_for_a_person_is_never_rolled_back_by_a_timeout() -> None:
    deployment = deploying("■■|■", paused_at=NOW, limits=RolloutLimits(timeout_seconds=60, progress_timeout_seconds=30))
    for hour in range(48):
        classified = cycle(deployment, NOW + timedelta(seconds=20, hours=hour))
        assert (classified.verdict, classified.to, classified.clock_stopped, classified.due_at) == (
            Verdict.SKIPPED,
            PROVISIONING,
            True,
            None,
        )
        deployment = applied(classified, NOW + timedelta(seconds=20, hours=hour))
    resumed_at = NOW + timedelta(hours=47, seconds=40)
    classified = cycle(replace(deployment, paused_at=None), resumed_at)
    assert classified.verdict is Verdict.NEED_RETRY
    deployment = applied(classified, resumed_at)
    assert deployment.rollout is not None
    assert deployment.rollout.clock_stopped_at is None
    assert deployment.rollout.deadline - resumed_at == timedelta(seconds=40)


def test_a_stopped_clock_moves_the_deadline_by_as_long_as_it_stood() -> None:
    stopped = deploying("■■|◇", rollout={"clock_stopped_at": NOW + timedelta(minutes=10)})
    now = NOW + timedelta(hours=5)
    classified = cycle(stopped, now)
    assert (classified.verdict, classified.due_at) == (Verdict.SKIPPED, now + timedelta(minutes=20))


def test_a_new_phase_is_due_at_once() -> None:
    assert rolled(MOVED, PAST_DEADLINE).due_at == PAST_DEADLINE
    assert cycle(deploying("|■■■"), NOW).due_at == NOW


def test_a_wait_is_due_at_the_earliest_of_all_clocks() -> None:
    sooner = Decision.wait(Waits(WaitsFor.TIME, "waiting"), NOW + timedelta(seconds=3))
    assert rolled(sooner).due_at == NOW + timedelta(seconds=3)
    later = Decision.wait(Waits(WaitsFor.TIME, "waiting"), NOW + timedelta(days=3))
    assert rolled(later).due_at == PAST_DEADLINE


def test_trap_naive_timestamps_are_found_by_the_first_comparison() -> None:
    naive = deploying("■■|■", rollout={"deadline": datetime(2026, 3, 14)})  # noqa: DTZ001  (that is the trap)
    with pytest.raises(TypeError, match="offset-naive"):
        cycle(naive, NOW)


def test_scaling_that_takes_too_long_ends_degraded_and_is_tried_again() -> None:
    late = NOW + timedelta(minutes=30)
    classified = cycle(resting("■■◇"), late)
    assert (classified.verdict, classified.to, classified.retry_at) == (
        Verdict.EXPIRED,
        READY,
        late + timedelta(seconds=60),
    )
    assert classified.degraded_reason == classified.reason


def test_scaling_is_tried_again_no_sooner_than_the_back_off_allows() -> None:
    late = NOW + timedelta(minutes=30)
    classified = cycle(resting("■■◇", start_failures=StartFailures(V2, 20, late - timedelta(seconds=1))), late)
    assert classified.retry_at == late + timedelta(seconds=599)


@pytest.mark.parametrize(
    ("decision", "stopped_at", "turns"),
    [
        (Decision.wait_for_person("waiting"), None, True),
        (Decision.wait_for_person("waiting"), NOW, False),
        (WAIT, NOW, True),
        (WAIT, None, False),
        (MOVED, NOW, True),
    ],
)
def test_a_clock_turns_when_it_stops_and_when_it_goes_on_again(
    decision: Decision, stopped_at: datetime | None, turns: object
) -> None:
    assert turns_clock(rolled(decision, NOW, deploying("■■|■", rollout={"clock_stopped_at": stopped_at}))) is turns


def test_without_a_rollout_there_is_no_clock_to_turn() -> None:
    assert not turns_clock(cycle(resting("■■◇"), NOW))
