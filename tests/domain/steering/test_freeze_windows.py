"""When a freeze is on: cron lines in time zones, hours that are skipped or come twice, and over whom."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from domain.steering.gates import AbsoluteWindow, CronWindow, Freeze, frozen

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize(
    ("cron", "zone", "hours", "now", "ends"),
    [
        pytest.param("0 9 * * *", "UTC", 1, "2026-03-14T08:59:59.999999Z", None, id="just before"),
        pytest.param("0 9 * * *", "UTC", 1, "2026-03-14T09:00Z", "2026-03-14T10:00Z", id="its first instant"),
        pytest.param("0 9 * * *", "UTC", 1, "2026-03-14T09:59:59.999999Z", "2026-03-14T10:00Z", id="its last one"),
        pytest.param("0 9 * * *", "UTC", 1, "2026-03-14T10:00Z", None, id="its end is no more in it"),
        pytest.param("0 22 * * *", "UTC", 8, "2026-03-15T05:00Z", "2026-03-15T06:00Z", id="over midnight"),
        pytest.param("0 18 * * FRI", BERLIN, 62, "2026-03-15T12:00Z", "2026-03-16T07:00Z", id="a weekend"),
        pytest.param("0 18 * * FRI", NEW_YORK, 62, "2026-03-13T21:59Z", None, id="there it is not evening yet"),
        pytest.param("0 0 24 12 *", "UTC", 240, "2027-01-01T00:00Z", "2027-01-03T00:00Z", id="over the new year"),
        # 29 March 2026 in Berlin: 02:00 to 03:00 is skipped
        pytest.param("30 2 * * *", BERLIN, 1, "2026-03-29T00:59Z", None, id="before the skipped hour"),
        pytest.param("30 2 * * *", BERLIN, 1, "2026-03-29T01:30Z", "2026-03-29T02:00Z", id="it begins at its end"),
        pytest.param("0 22 * * *", BERLIN, 8, "2026-03-29T04:30Z", "2026-03-29T05:00Z", id="8 hours, of a short night"),
        # 25 October 2026 in Berlin: 02:00 to 03:00 comes twice
        pytest.param("30 2 * * *", BERLIN, 0.5, "2026-10-25T00:45Z", "2026-10-25T01:00Z", id="the first 02:45"),
        pytest.param("30 2 * * *", BERLIN, 0.5, "2026-10-25T01:45Z", None, id="the second 02:45"),
        pytest.param("0 22 * * *", BERLIN, 8, "2026-10-25T03:30Z", "2026-10-25T04:00Z", id="8 hours, of a long night"),
        pytest.param("0 9 * * MON-FRI", "UTC", 24, "2026-03-11T12:00Z", "2026-03-14T09:00Z", id="windows that meet"),
        pytest.param("0 9,11 * * *", "UTC", 3, "2026-03-14T10:00Z", "2026-03-14T14:00Z", id="windows that overlap"),
    ],
)
def test_a_cron_window_is_on_from_its_line_in_its_time_zone_for_its_duration(
    cron: str, zone: str, hours: float, now: str, ends: str | None
) -> None:
    window = CronWindow(cron, ZoneInfo(zone), timedelta(hours=hours))
    assert window.ends(at(now)) == (at(ends) if ends else None)


@pytest.mark.parametrize(
    ("now", "starts"),
    [
        ("2026-03-28T12:00Z", "2026-03-29T01:00Z"),
        ("2026-03-29T01:00Z", "2026-03-30T00:30Z"),
        ("2026-10-24T12:00Z", "2026-10-25T00:30Z"),
        ("2026-10-25T00:30Z", "2026-10-26T01:30Z"),
    ],
)
def test_the_next_window_begins_when_the_clocks_there_say_so(now: str, starts: str) -> None:
    window = CronWindow("30 2 * * *", ZoneInfo(BERLIN), timedelta(hours=1))
    assert window.next_start(at(now)) == at(starts)


def test_windows_that_always_overlap_end_some_day_and_are_found_quickly() -> None:
    ends = CronWindow("* * * * *", ZoneInfo(BERLIN), timedelta(hours=1)).ends(at("2026-03-14T12:00Z"))
    assert ends is not None
    assert ends > at("2026-03-15T00:00Z")


def test_an_absolute_window_is_on_once() -> None:
    window = AbsoluteWindow(at("2026-12-24T18:00Z"), at("2027-01-02T09:00Z"))
    seen = [window.ends(at(now)) for now in ("2026-12-24T17:59Z", "2026-12-24T18:00Z", "2027-01-02T09:00Z")]
    assert seen == [None, window.ends_at, None]
    assert [window.next_start(at(now)) for now in ("2026-12-24T17:59Z", "2026-12-24T18:00Z")] == [
        window.starts_at,
        None,
    ]


@pytest.mark.parametrize(
    ("deployments", "groups", "deployment", "group", "is_meant"),
    [
        ((), (), "web", None, True),
        (("web",), (), "web", None, True),
        (("web",), (), "web-2", None, False),
        (("web*",), (), "web-2", "shop", True),
        (("web*",), (), "worker", None, False),
        ((), ("shop",), "cart", "shop", True),
        ((), ("shop",), "cart", None, False),
        (("web",), ("shop",), "cart", "shop", True),
    ],
)
def test_a_freeze_is_over_all_or_over_those_it_names(
    deployments: tuple[str, ...], groups: tuple[str, ...], deployment: str, group: str | None, *, is_meant: bool
) -> None:
    window = AbsoluteWindow(at("2026-12-24T18:00Z"), at("2027-01-02T09:00Z"))
    freeze = Freeze("holidays", window, deployments, groups)
    assert (frozen([freeze], deployment, group, at("2026-12-25T00:00Z")) is not None) is is_meant


def test_of_several_freezes_the_one_that_ends_last_is_named() -> None:
    short = AbsoluteWindow(at("2026-12-24T18:00Z"), at("2026-12-26T00:00Z"))
    long = AbsoluteWindow(at("2026-12-24T18:00Z"), at("2027-01-02T09:00Z"))
    freezes = [Freeze("a", long, reason="nobody is here"), Freeze("b", short)]
    found = frozen(freezes, "web", None, at("2026-12-25T00:00Z"))
    assert str(found) == "freeze a (nobody is here) until 2027-01-02 09:00 UTC"
