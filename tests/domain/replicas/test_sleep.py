"""Parked replicas: when one begins to sleep, when it is woken, and what it becomes."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.model.states import RouteStatus
from domain.replicas.health import HealthVerdict, ProbeResult
from domain.replicas.sleep import ParkedRoute, SleepStep, judge_sleep, next_sleep_step
from domain.revisions.warm_start_spec import Park

PARK = Park.model_validate({"sleep": {"path": "/sleep"}, "wake": {"path": "/wake"}, "awake_within_seconds": 10})
AT = datetime(2026, 1, 1, tzinfo=UTC)
P, H, U, F = RouteStatus.PROVISIONING, RouteStatus.HEALTHY, RouteStatus.UNHEALTHY, RouteStatus.FAILED


@pytest.mark.parametrize(
    ("status", "is_parked", "is_needed", "asleep_at", "wake_started_at", "step"),
    [
        (H, True, False, None, None, SleepStep.BEGINS),
        (U, True, False, None, None, SleepStep.NONE),
        (H, False, False, None, None, SleepStep.NONE),
        (H, True, True, None, None, SleepStep.NONE),
        (P, True, False, AT, None, SleepStep.NONE),
        (P, True, True, AT, None, SleepStep.WAKES),
        (P, False, True, AT, None, SleepStep.WAKES),
        (P, True, True, AT, AT, SleepStep.NONE),
    ],
)
def test_what_is_written_down_before_a_request_is_sent(
    status: RouteStatus,
    is_parked: bool,  # noqa: FBT001
    is_needed: bool,  # noqa: FBT001
    asleep_at: datetime | None,
    wake_started_at: datetime | None,
    step: SleepStep,
) -> None:
    route = ParkedRoute(status, is_parked, is_needed, asleep_at, None, wake_started_at)
    assert next_sleep_step(PARK, route) is step
    assert next_sleep_step(None, route) is SleepStep.NONE


@pytest.mark.parametrize(
    ("is_needed", "second", "becomes"),
    [(False, 999, P), (True, 9.9, P), (True, 10, F)],
)
def test_only_one_that_is_woken_has_a_clock(is_needed: bool, second: float, becomes: RouteStatus) -> None:  # noqa: FBT001
    route = ParkedRoute(P, is_parked=True, is_needed=is_needed, asleep_at=AT, slept_at=AT, wake_started_at=AT)
    now, result = AT + timedelta(seconds=second), ProbeResult(running=True, is_answered=True, detail="200")
    verdict = judge_sleep(PARK, route, result, now, "waking")
    assert verdict.status is becomes
    assert verdict.reason == ("not awake within 10 s: waking" if becomes is F else None)
    gone = ProbeResult(running=False, is_answered=None, detail="gone")
    assert judge_sleep(PARK, route, gone, now, "waking") == HealthVerdict(F, 0, "gone")
