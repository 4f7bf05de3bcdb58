"""Classification, rung by rung: what a verdict hardens to, where it leads, and when the next look is due."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.cycle.transitions import MAX_ATTEMPTS, ClassifiedDecision, RevisionMove, classify
from domain.cycle.writes import turns_clock
from domain.handlers.deploying import DeployingProvisioningHandler
from domain.handlers.dispatch import HANDLERS, cycle
from domain.handlers.scaling import ScalingHandler
from domain.model.decision import Decision, RouteChanges, Waits, WaitsFor
from domain.model.deployment import Deployment, StartFailures
from domain.model.policy import RolloutLimits
from domain.model.states import Verdict
from domain.planning.simulator import Fates
from tests.support.pictures.pictures import NOW, PROVISIONING, READY, ROLLING_BACK, V2, deploying, resting, rolling_back
from tests.support.pictures.simulation import applied, world_of

MOVED = Decision.moved("creating 1", RouteChanges.create(V2, 1))
WAIT = Decision.wait(Waits(WaitsFor.TIME, "waiting"))
DONE = Decision.success("done", RouteChanges.create(V2, 1))
GIVE_UP = Decision.give_up("hopeless")
ERROR = Decision(Verdict.ERROR, "ValueError: no")
FOR_A_PERSON = Decision.wait_for_person("paused")
PAST_DEADLINE = NOW + timedelta(minutes=30)


def rolled(decision: Decision, now: datetime = NOW, deployment: Deployment | None = None) -> ClassifiedDecision:
    before = deployment or deploying("■■|■")
    handler = DeployingProvisioningHandler()
    return classify(decision, before, handler.transitions, handler.bounds(before), now)


@pytest.mark.parametrize(
    ("decision", "in_time", "too_late"),
    [
        (DONE, Verdict.SUCCESS, Verdict.SUCCESS),
        (FOR_A_PERSON, Verdict.SKIPPED, Verdict.SKIPPED),
        (MOVED, Verdict.NEED_RETRY, Verdict.EXPIRED),
        (WAIT, Verdict.SKIPPED, Verdict.EXPIRED),
        (ERROR, Verdict.ERROR, Verdict.EXPIRED),
        (GIVE_UP, Verdict.GIVE_UP, Verdict.EXPIRED),
    ],
)
def test_the_ladder_of_deadlines(decision: Decision, in_time: Verdict, too_late: Verdict) -> None:
    assert rolled(decision, PAST_DEADLINE - timedelta(microseconds=1)).verdict is in_time
    assert rolled(decision, PAST_DEADLINE).verdict is too_late


@pytest.mark.parametrize(
    ("decision", "hardened"),
    [
        (DONE, Verdict.SUCCESS),
        (FOR_A_PERSON, Verdict.SKIPPED),
        (MOVED, Verdict.GIVE_UP),
        (WAIT, Verdict.GIVE_UP),
        (ERROR, Verdict.GIVE_UP),
        (GIVE_UP, Verdict.GIVE_UP),
    ],
)
def test_the_ladder_of_failed_routes(decision: Decision, hardened: Verdict) -> None:
    assert rolled(decision, deployment=deploying("■■|■", rollout={"failed_routes": 2})).verdict is decision.verdict
    assert rolled(decision, deployment=deploying("■■|■", rollout={"failed_routes": 3})).verdict is hardened


def test_a_deadline_comes_before_the_failure_budget() -> None:
    late = deploying("■■|■", rollout={"failed_routes": 9})
    assert rolled(MOVED, PAST_DEADLINE, late).verdict is Verdict.EXPIRED


@pytest.mark.parametrize(
    ("n", "allowed"), [(0, 3), (1, 3), (3, 3), (5, 3), (6, 3), (7, 4), (10, 5), (399, 200), (400, 200), (10_000, 200)]
)
def test_the_failure_budget_is_half_the_replicas_at_least_3_and_at_most_200(n: int, allowed: int) -> None:
    assert RolloutLimits().failures_allowed(n) == allowed
    assert RolloutLimits(failure_budget=1).failures_allowed(n) == 1


def test_five_errors_in_a_row_are_given_up() -> None:
    deployment, now, pauses = deploying("■■|■"), NOW, []
    for attempt in range(1, MAX_ATTEMPTS):
        classified = rolled(ERROR, now, deployment)
        assert (classified.verdict, classified.attempts) == (Verdict.ERROR, attempt)
        assert classified.due_at is not None
        pauses.append((classified.due_at - now).total_seconds())
        deployment, now = applied(classified, now), classified.due_at
    assert pauses == [5, 10, 15, 20]
    classified = rolled(ERROR, now, deployment)
    assert (classified.raw_verdict, classified.verdict, classified.to, classified.attempts) == (
        Verdict.ERROR,
        Verdict.GIVE_UP,
        ROLLING_BACK,
        0,
    )
    assert "5 errors in a row" in classified.reason
    assert "ValueError: no" in classified.reason


def test_one_good_cycle_forgets_the_errors_before_it() -> None:
    assert rolled(WAIT, deployment=deploying("■■|■", phase_attempts=4)).attempts == 0


@pytest.mark.parametrize("now", [PAST_DEADLINE, PAST_DEADLINE + timedelta(days=1)])
def test_trap_a_mutating_cycle_is_not_exempt_from_the_deadline_and_nothing_of_it_is_applied(now: datetime) -> None:
    classified = rolled(MOVED, now)
    assert (classified.raw_verdict, classified.verdict, classified.to) == (
        Verdict.NEED_RETRY,
        Verdict.EXPIRED,
        ROLLING_BACK,
    )
    assert not classified.changes
    assert "the timeout of 1800 s has passed; last: creating 1" in classified.reason


def test_a_hardened_verdict_keeps_both_revision_pointers() -> None:
    assert rolled(MOVED, PAST_DEADLINE).revision is RevisionMove.KEEP


def test_an_error_that_comes_too_late_turns_the_rollout_back_and_is_forgotten() -> None:
    classified = rolled(ERROR, PAST_DEADLINE)
    assert (classified.to, classified.attempts, classified.stays) == (ROLLING_BACK, 0, False)


def test_success_applies_its_changes_even_after_the_deadline() -> None:
    classified = rolled(DONE, PAST_DEADLINE)
    assert (classified.to, classified.revision, bool(classified.changes)) == (READY, RevisionMove.SWAP, True)


def test_scaling_that_converged_clears_the_mark() -> None:
    classified = cycle(resting("■■■", degraded_reason="before", retry_at=NOW), NOW)
    assert (classified.to, classified.degraded_reason, classified.retry_at) == (READY, None, None)


def test_scaling_on_its_way_keeps_the_mark() -> None:
    assert cycle(resting("■■", degraded_reason="before"), NOW).degraded_reason == "before"


def test_five_errors_while_scaling_end_degraded() -> None:
    handler = ScalingHandler()
    deployment = resting("■■■", phase_attempts=4)
    given_up = classify(ERROR, deployment, handler.transitions, handler.bounds(deployment), NOW)
    assert (given_up.verdict, given_up.to, given_up.attempts) == (Verdict.GIVE_UP, READY, 0)
    assert given_up.degraded_reason is not None


def test_five_errors_on_the_way_back_pause_and_go_on() -> None:
    deployment = rolling_back("■|■■", current_revision_id=None, phase_attempts=4)
    classified = cycle(deployment, NOW)
    assert (classified.verdict, classified.to, classified.due_at) == (
        Verdict.GIVE_UP,
        ROLLING_BACK,
        NOW + timedelta(seconds=60),
    )
    assert classified.attempts == 0


def test_an_autoscaling_decision_carries_its_new_count() -> None:
    handler = ScalingHandler()
    deployment = resting("■■■")
    more = replace(DONE, desired_replicas=7)
    assert classify(more, deployment, handler.transitions, handler.bounds(deployment), NOW).desired_replicas == 7
    none = replace(DONE, desired_replicas=0)
    assert classify(none, deployment, handler.transitions, handler.bounds(deployment), NOW).desired_replicas == 0
    assert classify(DONE, deployment, handler.transitions, handler.bounds(deployment), NOW).desired_replicas == 3


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=lambda handler: handler.name)
@pytest.mark.parametrize("decision", [DONE, MOVED, WAIT, ERROR, GIVE_UP], ids=lambda decision: str(decision.verdict))
def test_every_verdict_of_every_handler_leads_on_or_has_a_clock(handler: Any, decision: Decision) -> None:
    for target in handler.targets:
        deployment = replace(deploying("■■|■"), status=target)
        if target.sub_step is None:
            deployment = resting("■■", status=target)
        bounds = handler.bounds(deployment)
        for now in (NOW, NOW + timedelta(days=1)):
            classified = classify(decision, deployment, handler.transitions, bounds, now)
            if classified.verdict in (Verdict.SKIPPED, Verdict.NEED_RETRY):
                continue  # a change of a route wakes it, as long as it stays a target of some handler
            assert classified.to != deployment.status or classified.due_at is not None


@pytest.mark.parametrize("start_seconds", [0.5, 2])
def test_trap_routes_that_fail_at_once_end_the_rollout_instead_of_being_created_for_ever(start_seconds: float) -> None:
    world = world_of(deploying("■■■|"), start_seconds=start_seconds, starts_fail=True)
    while world.deployment.status == PROVISIONING and world.at < PAST_DEADLINE:
        world.run(seconds=1)
        world.at += timedelta(seconds=1)
    assert world.deployment.status == ROLLING_BACK
    assert world.created <= 4
    world.fates = Fates()
    world.run(seconds=60)
    assert world.deployment.status == READY
    assert len(world.deployment.routes) == 3


CHANGED = [{"desired_replicas": 5}, {"degraded_reason": "it failed"}, {"to": READY}, {"revision": RevisionMove.SWAP}]


@pytest.mark.parametrize("changed", CHANGED)
def test_a_decision_stays_where_it_changes_nothing_of_the_deployment_itself(changed: dict[str, Any]) -> None:
    assert rolled(MOVED).stays
    assert not replace(rolled(MOVED), **changed).stays


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
