"""How far a clock is off, and which hosts get new replicas: a minute too far is out, unless all are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.replicas.host_choice import clock_offset, hosts_in_time, is_warned_of, seconds_set_back

SECONDS = st.floats(-1e9, 1e9)


@pytest.mark.parametrize(
    ("before", "after", "theirs", "offset"),
    [
        (100.0, 100.0, 100.0, 0.0),
        (100.0, 104.0, 100.0, 0.0),
        (100.0, 104.0, 104.0, 0.0),  # a slow answer makes no clock wrong
        (102.0, 102.5, 100.0, 2.0),
        (100.0, 100.5, 110.5, -10.0),
    ],
)
def test_a_clock_is_off_by_what_the_round_trip_does_not_explain(
    before: float, after: float, theirs: float, offset: float
) -> None:
    assert clock_offset(before, after, theirs) == offset


@given(
    theirs=st.integers(0, 10**9), ahead=st.integers(-(10**4), 10**4), there=st.integers(0, 50), back=st.integers(0, 50)
)
def test_a_clock_is_never_said_to_be_further_off_than_it_is(theirs: int, ahead: int, there: int, back: int) -> None:
    told = clock_offset(theirs - there + ahead, theirs + back + ahead, theirs)
    assert told * ahead >= 0, "not on the other side"
    assert abs(ahead) - max(there, back) <= abs(told) <= abs(ahead)


@pytest.mark.parametrize(
    ("offsets", "chosen"),
    [
        ("a:0 b:0", "a b"),
        ("a:0 b:2 c:-10 d:30", "a b c d"),
        ("a:60 b:-60", "a b"),
        ("a:61 b:0", "b"),
        ("a:-61 b:0", "b"),
        ("b:7200 a:0 c:30", "a c"),
        ("b:7200 a:7200", "a b"),  # all are off: it may be the database that is wrong
        ("a:7200", "a"),
        ("", ""),
    ],
)
def test_a_host_that_is_off_by_more_than_a_minute_gets_no_replica_while_another_is_nearer(
    offsets: str, chosen: str
) -> None:
    told = {host: float(offset) for host, offset in (word.split(":") for word in offsets.split())}
    assert " ".join(hosts_in_time(told)) == chosen


@pytest.mark.parametrize(
    ("showed", "passed", "shows", "back"), [(100, 1, 101, 0), (100, 1, 100.5, 0.5), (100, 1, 41, 60), (100, 1, 900, 0)]
)
def test_a_clock_was_set_back_by_what_is_missing(showed: float, passed: float, shows: float, back: float) -> None:
    assert seconds_set_back(showed, passed, shows) == back


@pytest.mark.parametrize(("offset", "is_warned"), [(0, False), (1, False), (-1, False), (1.01, True), (-1.01, True)])
def test_a_clock_that_is_off_by_more_than_a_second_is_warned_of(offset: float, *, is_warned: bool) -> None:
    assert is_warned_of(offset) is is_warned
