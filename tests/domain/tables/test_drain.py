"""The ladder by which a replica leaves: proxies first, then requests in flight, then the process."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.model import RouteStatus
from domain.replicas.drain import DrainTimes, LeavingRoute, StopStep, next_stop_step

BEGAN = datetime(2026, 11, 21, tzinfo=UTC)
PATIENCE = DrainTimes(deadline=timedelta(seconds=60), drain=timedelta(seconds=2), stop_grace=timedelta(seconds=10))
DRAINING = LeavingRoute(
    RouteStatus.TERMINATING,
    was_started=True,
    running=True,
    is_unheard=False,
    drain_started_at=BEGAN,
    out_of_traffic_at=None,
    stop_requested_at=None,
)
FAILED = replace(DRAINING, status=RouteStatus.FAILED, drain_started_at=None)


def after(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


ACKNOWLEDGED = replace(DRAINING, out_of_traffic_at=after(5))
ASKED = replace(ACKNOWLEDGED, stop_requested_at=after(7))


@pytest.mark.parametrize(
    ("leaving", "seconds", "step"),
    [
        (DRAINING, 0, StopStep.WAIT),
        (DRAINING, 61.9, StopStep.WAIT),
        (DRAINING, 62, StopStep.ASK),
        (ACKNOWLEDGED, 6.9, StopStep.WAIT),
        (ACKNOWLEDGED, 7, StopStep.ASK),
        (ASKED, 16.9, StopStep.WAIT),
        (ASKED, 17, StopStep.KILL),
        (replace(ASKED, running=False), 7, StopStep.GONE),
        (replace(DRAINING, running=False), 0, StopStep.GONE),
        (FAILED, 0, StopStep.ASK),
        (replace(DRAINING, running=None), 0, StopStep.WAIT),
        (replace(DRAINING, running=None, was_started=False), 0, StopStep.GONE),
        (replace(FAILED, was_started=False), 0, StopStep.ASK),
        (replace(FAILED, was_started=False, is_unheard=True), 1, StopStep.GONE),
        (replace(ASKED, is_unheard=True), 16.9, StopStep.ASK),
        (replace(ASKED, is_unheard=True), 17, StopStep.KILL),
        (replace(ASKED, running=None), 17, StopStep.KILL),
    ],
)
def test_a_replica_leaves_step_by_step(leaving: LeavingRoute, seconds: float, step: StopStep) -> None:
    assert next_stop_step(leaving, PATIENCE, after(seconds)) is step


def test_a_drain_that_nobody_began_is_no_drain() -> None:
    with pytest.raises(ValueError, match="a terminating route has no drain_started_at"):
        next_stop_step(replace(DRAINING, drain_started_at=None), PATIENCE, BEGAN)


@given(
    acknowledged=st.none() | st.floats(0, 100),
    now=st.floats(0, 200),
    deadline=st.floats(0, 100),
    drain=st.floats(0, 50),
)
def test_a_running_replica_is_never_asked_to_end_before_proxies_and_requests_had_their_time(
    acknowledged: float | None, now: float, deadline: float, drain: float
) -> None:
    leaving = replace(DRAINING, out_of_traffic_at=None if acknowledged is None else after(acknowledged))
    patience = DrainTimes(timedelta(seconds=deadline), timedelta(seconds=drain), timedelta())
    step = next_stop_step(leaving, patience, after(now))
    out_of_traffic = after(deadline if acknowledged is None else acknowledged)
    assert (step is StopStep.WAIT) == (after(now) < out_of_traffic + patience.drain)
