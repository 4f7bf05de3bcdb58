"""Parked replicas: when one begins to sleep, when it is woken, and what it becomes."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.model.states import RouteStatus
from domain.replicas.drain import DrainTimes
from domain.replicas.health import HealthVerdict, ProbeResult
from domain.replicas.sleep import ParkedRoute, SleepStep, judge_sleep, next_sleep_step
from domain.revisions.warm_start_spec import Park

PARK = Park.model_validate({"sleep": {"path": "/sleep"}, "wake": {"path": "/wake"}, "awake_within_seconds": 10})
AT = datetime(2026, 1, 1, tzinfo=UTC)
P, H, U, F = RouteStatus.PROVISIONING, RouteStatus.HEALTHY, RouteStatus.UNHEALTHY, RouteStatus.FAILED
TIMES = DrainTimes(deadline=timedelta(seconds=60), drain=timedelta(seconds=2), stop_grace=timedelta(seconds=1))


def after(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("status", "parked_at", "is_needed", "asleep_at", "wake_started_at", "step"),
    [
        (H, AT, False, None, None, SleepStep.BEGINS),
        (U, AT, False, None, None, SleepStep.NONE),
        (H, None, False, None, None, SleepStep.NONE),
        (H, AT, True, None, None, SleepStep.NONE),
        (P, AT, False, AT, None, SleepStep.NONE),
        (H, AT, False, AT, None, SleepStep.NONE),
        (P, AT, True, AT, None, SleepStep.WAKES),
        (P, None, True, AT, None, SleepStep.WAKES),
        (P, AT, True, AT, AT, SleepStep.NONE),
    ],
)
def test_what_is_written_down_before_a_request_is_sent(
    status: RouteStatus,
    parked_at: datetime | None,
    is_needed: bool,  # noqa: FBT001
    asleep_at: datetime | None,
    wake_started_at: datetime | None,
    step: SleepStep,
) -> None:
    route = ParkedRoute(status, is_needed, parked_at, AT, asleep_at, None, wake_started_at)
    assert next_sleep_step(PARK, route, TIMES, after(2)) is step
    assert next_sleep_step(None, route, TIMES, after(2)) is SleepStep.NONE


@pytest.mark.parametrize(
    ("let_go_after", "sleeps_after"),
    [
        (0, 2),
        (0.5, 2.5),
        (300, 302),  # proxies let go of it late
        (None, 62),  # a proxy that never acknowledges is waited for until the deadline
        (-100, 2),  # this was another time that it was parked; an earlier release has parked it now
    ],
)
def test_it_sleeps_when_its_last_requests_are_answered(let_go_after: float | None, sleeps_after: float) -> None:
    let_go_at = None if let_go_after is None else after(let_go_after)
    route = ParkedRoute(H, False, AT, let_go_at, None, None, None)  # noqa: FBT003
    assert next_sleep_step(PARK, route, TIMES, after(sleeps_after - 0.1)) is SleepStep.NONE
    assert next_sleep_step(PARK, route, TIMES, after(sleeps_after)) is SleepStep.BEGINS


@pytest.mark.parametrize(
    ("is_needed", "second", "becomes"),
    [(False, 999, P), (True, 9.9, P), (True, 10, F)],
)
def test_only_one_that_is_woken_has_a_clock(is_needed: bool, second: float, becomes: RouteStatus) -> None:  # noqa: FBT001
    route = ParkedRoute(P, is_needed, AT, AT, asleep_at=AT, slept_at=AT, wake_started_at=AT)
    now, result = after(second), ProbeResult(running=True, is_answered=True, detail="200")
    reason = "not awake within 10 s: waking" if becomes is F else None
    assert judge_sleep(PARK, route, result, now, "waking") == HealthVerdict(becomes, 0, reason)
    gone = ProbeResult(running=False, is_answered=None, detail="gone")
    assert judge_sleep(PARK, route, gone, now, "waking") == HealthVerdict(F, 0, "gone")


@pytest.mark.parametrize(
    ("asleep_at", "is_needed", "is_asleep", "is_waking"),
    [(None, False, False, False), (None, True, False, False), (AT, False, True, False), (AT, True, False, True)],
)
def test_it_sleeps_until_it_is_needed(
    asleep_at: datetime | None,
    is_needed: bool,  # noqa: FBT001
    is_asleep: bool,  # noqa: FBT001
    is_waking: bool,  # noqa: FBT001
) -> None:
    route = ParkedRoute(P, is_needed, AT, AT, asleep_at, None, None)
    assert (route.is_asleep, route.is_waking) == (is_asleep, is_waking)
