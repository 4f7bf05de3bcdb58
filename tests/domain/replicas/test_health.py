from datetime import UTC, datetime, timedelta

import pytest

from domain.model.states import RouteStatus
from domain.replicas.health import (
    HealthVerdict,
    ProbedRoute,
    ProbeResult,
    end_in_words,
    judge_health,
    pause_while_starting,
    probe_is_due,
    unread_status,
    why_not_yet,
)
from domain.revisions.health_check import HealthCheck

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
CHECK = HealthCheck(success_threshold=2, failure_threshold=3, initial_delay_seconds=1, start_deadline_seconds=10)
YES, NO, NO_PROBE, GONE = "yes", "no", "no probe", "gone"
P, H, U, D = RouteStatus.PROVISIONING, RouteStatus.HEALTHY, RouteStatus.UNHEALTHY, RouteStatus.DEGRADED
F = RouteStatus.FAILED
LATE = "not healthy within 10 s of its start: "


def judge(
    status: RouteStatus, streak: int, look: str, second: float = 5, check: HealthCheck | None = CHECK
) -> HealthVerdict:
    answered = {YES: True, NO: False}.get(look)
    route = ProbedRoute(status, STARTED, streak)
    now = STARTED + timedelta(seconds=second)
    return judge_health(check, route, ProbeResult(running=look != GONE, is_answered=answered, detail=look), now)


@pytest.mark.parametrize(
    ("status", "streak", "look", "second", "expected", "new_streak", "reason"),
    [
        (P, 0, YES, 5, P, 1, None),
        (P, 1, YES, 5, H, 0, YES),
        (P, 1, NO, 5, P, 0, None),
        (P, 1, NO_PROBE, 5, P, 1, None),
        (P, 0, NO, 9.99, P, 0, None),
        (P, 0, NO, 10, F, 0, LATE + NO),
        (P, 1, NO_PROBE, 10, F, 0, LATE + NO_PROBE),
        (P, 1, YES, 10, H, 0, YES),
        (P, 1, GONE, 0, F, 0, GONE),
        (H, 0, YES, 99, H, 0, None),
        (H, 0, NO, 99, H, 1, None),
        (H, 1, NO, 99, H, 2, None),
        (H, 2, NO, 99, U, 0, NO),
        (H, 2, YES, 99, H, 0, None),
        (H, 2, NO_PROBE, 99, H, 2, None),
        (H, 0, GONE, 99, F, 0, GONE),
        (U, 0, NO, 99, U, 0, None),
        (U, 0, YES, 99, U, 1, None),
        (U, 1, YES, 99, H, 0, YES),
        (U, 1, NO, 99, U, 0, None),
        (U, 1, NO_PROBE, 99, U, 1, None),
        (U, 1, GONE, 99, F, 0, GONE),
        (D, 0, YES, 99, H, 0, YES),
        (D, 0, NO, 99, U, 0, NO),
        (D, 1, NO_PROBE, 99, D, 1, None),
        (D, 0, GONE, 99, F, 0, GONE),
    ],
)
def test_a_look_at_a_checked_route_leads_to(
    status: RouteStatus,
    streak: int,
    look: str,
    second: float,
    expected: RouteStatus,
    new_streak: int,
    reason: str | None,
) -> None:
    assert judge(status, streak, look, second) == HealthVerdict(expected, new_streak, reason)


@pytest.mark.parametrize(("status", "second"), [(P, 3), (U, 0), (D, 0)])
def test_without_a_check_a_running_replica_is_healthy(status: RouteStatus, second: float) -> None:
    assert judge(status, 0, NO_PROBE, second, check=None) == HealthVerdict(H, 0, "it runs")
    assert judge(status, 0, GONE, second, check=None) == HealthVerdict(F, 0, GONE)


def test_without_a_check_a_replica_has_to_run_for_a_while() -> None:
    assert judge(P, 0, NO_PROBE, 2.99, check=None) == HealthVerdict(P, 0)
    assert judge(P, 0, GONE, 2.99, check=None) == HealthVerdict(F, 0, GONE)


def test_without_a_check_nothing_changes_while_it_runs() -> None:
    assert judge(H, 0, NO_PROBE, check=None) == HealthVerdict(H, 0)


@pytest.mark.parametrize("check", [CHECK, None])
@pytest.mark.parametrize("look", [YES, NO, NO_PROBE, GONE])
@pytest.mark.parametrize("status", [status for status in RouteStatus if not status.is_active])
def test_a_route_on_its_way_out_is_not_judged(status: RouteStatus, look: str, check: HealthCheck | None) -> None:
    assert judge(status, 1, look, 99, check) == HealthVerdict(status, 1)


@pytest.mark.parametrize("check", [CHECK, None])
@pytest.mark.parametrize("look", [YES, NO, NO_PROBE, GONE])
@pytest.mark.parametrize("status", [status for status in RouteStatus if status.is_active])
def test_a_change_of_status_has_a_reason_and_a_fresh_streak(
    status: RouteStatus, look: str, check: HealthCheck | None
) -> None:
    verdict = judge(status, 2, look, 99, check)
    assert (verdict.reason is not None) == (verdict.status is not status)
    assert verdict.reason is None or verdict.streak == 0


@pytest.mark.parametrize(("second", "due"), [(0, False), (0.99, False), (1, True), (60, True)])
def test_trap_a_start_delay_counts_from_the_start_of_the_replica_and_not_from_its_row(second: float, due: bool) -> None:  # noqa: FBT001
    assert probe_is_due(CHECK, STARTED, STARTED + timedelta(seconds=second)) is due


@pytest.mark.parametrize(
    ("streak", "started_for", "pause"),
    [
        (0, -0.001, 0.02),
        (0, 0, 0.02),
        (0, 0.8, 0.02),
        (0, 1, 0.025),
        (0, 4, 0.1),
        (0, 9, 0.225),
        (0, 10, 0.25),
        (0, 600, 0.25),
        (1, 0, 0.1),
        (1, 1, 0.1),
        (2, 600, 0.1),
    ],
)
def test_a_replica_that_starts_is_asked_again_after_a_fortieth_of_its_time_and_after_a_success_always_alike(
    streak: int, started_for: float, pause: float
) -> None:
    route = ProbedRoute(P, STARTED, streak)
    assert pause_while_starting(route, STARTED + timedelta(seconds=started_for)) == timedelta(seconds=pause)


@pytest.mark.parametrize(
    ("status", "becomes"),
    [
        (P, RouteStatus.FAILED),
        (H, RouteStatus.DEGRADED),
        (U, RouteStatus.DEGRADED),
        (RouteStatus.DEGRADED, RouteStatus.DEGRADED),
        (RouteStatus.TERMINATING, RouteStatus.TERMINATING),
        (RouteStatus.FAILED, RouteStatus.FAILED),
    ],
)
def test_what_this_release_cannot_read_fails_at_its_start_and_is_not_judged_later(
    status: RouteStatus, becomes: RouteStatus
) -> None:
    assert unread_status(status) is becomes


@pytest.mark.parametrize(
    ("exit_code", "said"),
    [
        (None, "its process ended"),
        (0, "its process ended with exit code 0"),
        (3, "its process ended with exit code 3"),
        (-1, "its process was killed by SIGHUP"),
        (-9, "its process was killed by SIGKILL"),
        (-99, "its process was killed by signal 99"),
    ],
)
def test_a_signal_is_called_by_its_name(exit_code: int | None, said: str) -> None:
    assert end_in_words(exit_code) == said


@pytest.mark.parametrize(
    ("status", "look", "second", "said"),
    [
        (P, NO, 3, "not healthy yet: no"),
        (P, NO, 2.9, None),
        (P, YES, 60, None),
        (H, NO, 60, None),
        (U, NO, 60, None),
    ],
)
def test_a_long_start_says_what_its_probe_saw(status: RouteStatus, look: str, second: float, said: str | None) -> None:
    now = STARTED + timedelta(seconds=second)
    assert why_not_yet(ProbedRoute(status, STARTED, 0), look == YES, look, now) == said
