"""Freezes around the hours that clocks of any zone skip, or show twice, in ten years: each lasts as long as it says."""

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.steering.gates import CronWindow

FIRST, LAST = datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ZONES = sorted(zone for zone in available_timezones() if zone not in {"localtime", "Factory"})
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@cache
def turns(zone: str) -> tuple[datetime, ...]:
    """When clocks are set there, to the minute."""
    there, found, day = ZoneInfo(zone), [], FIRST
    while day < LAST:
        begin, end = day, day + DAY
        if begin.astimezone(there).utcoffset() != end.astimezone(there).utcoffset():
            while end - begin > MINUTE:
                middle = begin + (end - begin) // 2 // MINUTE * MINUTE
                is_set = middle.astimezone(there).utcoffset() != begin.astimezone(there).utcoffset()
                begin, end = (begin, middle) if is_set else (middle, end)
            found.append(end)
        day += DAY
    return tuple(found)


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone, and an instant that is near one at which its clocks are set, where they ever are."""
    zone = draw(st.sampled_from(ZONES))
    around = turns(zone) or (datetime(2026, 10, 25, 1, tzinfo=UTC),)
    return zone, draw(st.sampled_from(around)) + draw(st.integers(-30 * 60, 30 * 60)) * MINUTE


LINES = st.tuples(st.integers(0, 59), st.integers(0, 23), st.sampled_from(("*", *DAYS)))
NIGHTS = st.tuples(st.integers(0, 59), st.integers(0, 4), st.just("*"))


def starts(zone: ZoneInfo, line: tuple[int, int, str], since: datetime, until: datetime) -> list[datetime]:
    """When clocks there first show this each day, or what comes in its place, by looking at each minute."""
    minute, hour, weekday = line
    found, instant = [], since - DAY
    previous = instant.astimezone(zone).replace(tzinfo=None)
    seen: set[datetime] = set()
    while instant < until + DAY:
        shown = instant.astimezone(zone).replace(tzinfo=None)
        skipped = max((shown - previous) // MINUTE - 1, 0)
        for passed in range(skipped + 1):
            each = shown - passed * MINUTE
            is_due = (each.minute, each.hour) == (minute, hour) and weekday in {"*", DAYS[each.isoweekday() % 7]}
            if is_due and each not in seen:
                seen.add(each)
                found.append(instant)
        previous, instant = shown, instant + MINUTE
    return [start for start in found if since <= start <= until]


@given(moments(), LINES | NIGHTS, st.integers(1, 10 * 60))
def test_a_window_is_on_from_its_start_for_as_long_as_it_says(
    moment: tuple[str, datetime], line: tuple[int, int, str], minutes: int
) -> None:
    zone, now = moment
    window = CronWindow(f"{line[0]} {line[1]} * * {line[2]}", ZoneInfo(zone), minutes * MINUTE)
    begun = [
        start for start in starts(ZoneInfo(zone), line, now - minutes * MINUTE, now) if now - start < window.duration
    ]
    ends = window.ends(now)
    assert (ends is not None) == bool(begun), (begun, ends)
    if ends is not None and ends - now > MINUTE:
        assert window.ends(ends - MINUTE) == ends
        assert ends >= begun[-1] + window.duration


@given(moments(), LINES | NIGHTS)
def test_the_next_window_has_not_been_and_is_the_first_that_comes(
    moment: tuple[str, datetime], line: tuple[int, int, str]
) -> None:
    zone, now = moment
    window = CronWindow(f"{line[0]} {line[1]} * * {line[2]}", ZoneInfo(zone), HOUR)
    following = [start for start in starts(ZoneInfo(zone), line, now, now + 2 * DAY) if start > now]
    if line[2] == "*" or following:
        assert window.next_start(now) == following[0]


@given(moments(), LINES | NIGHTS, st.integers(1, 23 * 60))
def test_each_window_ends_when_its_time_is_over(
    moment: tuple[str, datetime], line: tuple[int, int, str], minutes: int
) -> None:
    zone, now = moment
    window = CronWindow(f"{line[0]} {line[1]} * * SUN", ZoneInfo(zone), minutes * MINUTE)
    start = window.next_start(now)
    assert start is not None
    if (start - now) > window.duration:
        assert window.ends(start - MINUTE) is None
    assert window.ends(start) == start + window.duration
    assert window.ends(start + window.duration - MINUTE) == start + window.duration
    assert window.ends(start + window.duration) is None


@pytest.mark.parametrize(
    ("zone", "line", "begins"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T00:30Z"),
        ("Europe/Berlin", "0 2 * * SUN", "2026-10-25T00:00Z"),
        ("Europe/Berlin", "59 2 * * *", "2026-10-25T00:59Z"),
        ("America/New_York", "30 1 * * *", "2026-11-01T05:30Z"),
        ("Australia/Sydney", "30 2 * * *", "2026-04-04T15:30Z"),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T14:45Z"),
        ("Antarctica/Troll", "30 1 * * *", "2026-10-24T23:30Z"),
        ("Africa/Casablanca", "30 2 * * *", "2026-02-15T01:30Z"),
    ],
)
def test_in_the_hour_that_comes_twice_a_freeze_goes_on(zone: str, line: str, begins: str) -> None:
    window, start = CronWindow(line, ZoneInfo(zone), 1.5 * HOUR), datetime.fromisoformat(begins)
    on = [window.ends(start + minute * MINUTE) for minute in range(-30, 91)]
    assert on == [None] * 30 + [start + 1.5 * HOUR] * 90 + [None]
    nexts = {window.next_start(start + minute * MINUTE) for minute in range(180)}
    (following,) = nexts
    assert following is not None
    assert following > start + 20 * HOUR


@pytest.mark.parametrize("line", ["*/30 * * * *", "* 2 * * *", "15 */2 * * *"])
def test_a_line_with_a_star_means_each_hour_that_comes(line: str) -> None:
    """Each instant at which the clock there shows it, by looking at each minute of both hours."""
    window, there = CronWindow(line, ZoneInfo("Europe/Berlin"), 10 * MINUTE), ZoneInfo("Europe/Berlin")
    fields = {"*/30 * * * *": (30, 1, None), "* 2 * * *": (1, 24, 2), "15 */2 * * *": (60, 2, None)}
    every, hours, hour = fields[line]
    night = [datetime(2026, 10, 24, 22, tzinfo=UTC) + minute * MINUTE for minute in range(6 * 60)]

    def begins(instant: datetime) -> bool:
        shown = instant.astimezone(there)
        minute = shown.minute - 15 if line.startswith("15") else shown.minute
        return minute % every == 0 and (shown.hour == hour if hour else shown.hour % hours == 0)

    for now in night:
        is_on = any(begins(now - minute * MINUTE) for minute in range(10))
        assert (window.ends(now) is not None) == is_on, now
