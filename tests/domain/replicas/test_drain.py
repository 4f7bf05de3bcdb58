"""The ladder by which a replica leaves: proxies first, then requests in flight, then the process."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.model.states import RouteStatus
from domain.replicas.drain import (
    DrainLook,
    DrainTimes,
    LeavingRoute,
    StopStep,
    cut_by_maximum,
    cut_in_words,
    killed_in_words,
    next_stop_step,
)
from domain.revisions.revision import RevisionSpec

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
    has_address=True,
)
FAILED = replace(DRAINING, status=RouteStatus.FAILED, drain_started_at=None)


def after(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


ACKNOWLEDGED = replace(DRAINING, out_of_traffic_at=after(5))
UNTIL_IDLE = replace(PATIENCE, drain_max=timedelta(seconds=100))
TOLD = replace(ACKNOWLEDGED, do_proxies_tell=True)
BUSY = replace(TOLD, look=DrainLook(3, 0))
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


@pytest.mark.parametrize(
    ("leaving", "seconds", "step"),
    [
        # acknowledged at 5 s, drain_seconds 2, drain_max_seconds 100
        (ACKNOWLEDGED, 6.9, StopStep.WAIT),  # proxies do not tell: drain_seconds
        (ACKNOWLEDGED, 7, StopStep.ASK),
        (TOLD, 9.9, StopStep.WAIT),  # until the first look
        (TOLD, 10, StopStep.ASK),
        (replace(TOLD, have_proxies_told=True), 104.9, StopStep.WAIT),  # they tell, and their server may be away
        (replace(TOLD, have_proxies_told=True), 105, StopStep.ASK),
        (replace(TOLD, do_proxies_tell=False, have_proxies_told=True), 7, StopStep.ASK),
        (replace(TOLD, has_address=False, have_proxies_told=True), 6.9, StopStep.WAIT),  # no proxy knows it
        (replace(TOLD, has_address=False, have_proxies_told=True), 7, StopStep.ASK),
        (BUSY, 104.9, StopStep.WAIT),
        (BUSY, 105, StopStep.ASK),
        (replace(BUSY, do_proxies_tell=False), 7, StopStep.ASK),
        (replace(TOLD, look=DrainLook(0, 1)), 104.9, StopStep.WAIT),  # one look may have come between two requests
        (replace(TOLD, look=DrainLook(0, 2)), 5, StopStep.ASK),
        (replace(TOLD, look=DrainLook(0, 2)), 4.9, StopStep.WAIT),  # the clock was set back
        (replace(DRAINING, do_proxies_tell=True), 61.9, StopStep.WAIT),
        (replace(DRAINING, do_proxies_tell=True), 62, StopStep.ASK),
    ],
)
def test_a_replica_is_waited_for_until_it_is_idle_where_proxies_tell(
    leaving: LeavingRoute, seconds: float, step: StopStep
) -> None:
    assert next_stop_step(leaving, UNTIL_IDLE, after(seconds)) is step


def test_a_fixed_drain_asks_nobody() -> None:
    assert next_stop_step(replace(TOLD, look=DrainLook(0, 2)), PATIENCE, after(6.9)) is StopStep.WAIT
    assert next_stop_step(BUSY, PATIENCE, after(7)) is StopStep.ASK


@pytest.mark.parametrize(
    ("leaving", "times", "cut"),
    [
        (BUSY, UNTIL_IDLE, 3),
        (BUSY, PATIENCE, 0),
        (TOLD, UNTIL_IDLE, 0),
        (replace(BUSY, do_proxies_tell=False), UNTIL_IDLE, 0),
        (replace(BUSY, look=DrainLook(0, 2)), UNTIL_IDLE, 0),
    ],
)
def test_what_is_cut_is_what_proxies_told_last(leaving: LeavingRoute, times: DrainTimes, cut: int) -> None:
    assert cut_by_maximum(leaving, times) == cut


@pytest.mark.parametrize(("drain", "drain_max"), [("until_idle", timedelta(seconds=90)), ("fixed", None)])
def test_a_revision_asks_for_its_times(drain: str, drain_max: timedelta | None) -> None:
    given = {"command": ["a"], "drain_seconds": 3, "stop_grace_seconds": 7, "drain": drain, "drain_max_seconds": 90}
    minute = timedelta(minutes=1)
    assert DrainTimes.of(RevisionSpec.model_validate(given), minute) == DrainTimes(
        deadline=minute, drain=timedelta(seconds=3), stop_grace=timedelta(seconds=7), drain_max=drain_max
    )


def test_what_is_cut_is_said() -> None:
    assert cut_in_words(3600, 1) == "1 answer was still under way after drain_max_seconds, 3600 s: cut"
    assert cut_in_words(0.5, 12) == "12 answers were still under way after drain_max_seconds, 0.5 s: cut"


def test_a_replica_that_was_killed_is_said_to_be() -> None:
    assert killed_in_words(10) == "killed after 10 s: it did not end on SIGTERM"
    assert killed_in_words(0.5, 3) == "3 replicas killed after 0.5 s: they did not end on SIGTERM"


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
