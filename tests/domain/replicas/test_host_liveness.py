"""How many silent looks degrade a host's replicas, and how many make the host lost."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.replicas.host_choice import (
    BEAT_MISSED_AFTER,
    FRESH_SECONDS,
    MISSED_AFTER,
    SIGN_OF_LIFE_SECONDS,
    is_lost,
    looks_until_degraded,
    looks_until_down,
)


@pytest.mark.parametrize(
    ("seconds", "degraded", "down"), [(1, 1, 1), (2, 1, 1), (4, 1, 2), (6, 2, 3), (15, 4, 8), (60, 15, 30)]
)
def test_half_of_the_looks_degrade(seconds: float, degraded: int, down: int) -> None:
    assert (looks_until_degraded(seconds), looks_until_down(seconds)) == (degraded, down)


def test_a_sign_each_second_and_the_limits_of_silence_are_those_that_people_read_of() -> None:
    assert (SIGN_OF_LIFE_SECONDS, FRESH_SECONDS) == (1, 2.5)
    assert (timedelta(seconds=5), timedelta(seconds=15)) == (MISSED_AFTER, BEAT_MISSED_AFTER)


@pytest.mark.parametrize(
    ("started", "back", "looked", "now", "lost"),
    [
        (10, None, None, 20, False),  # the host was never away
        (10, 15, None, 15, True),
        (10, 15, None, 16, True),
        (10, 15, None, 25, True),
        (10, 15, None, 26, False),  # it would have been found by then: its revision ended it
        (10, 15, 40, 50, True),  # nobody had looked
        (10, 15, 40, 51, False),
        (15, 15, None, 16, False),  # it was started when its host was back
        (16, 15, 17, 17, False),  # it was started by the host that is back
    ],
)
def test_what_was_started_before_its_host_was_away_may_be_lost_for_ten_seconds(
    started: int, back: int | None, looked: int | None, now: int, *, lost: bool
) -> None:
    def at(seconds: int | None) -> datetime | None:
        return None if seconds is None else datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)

    assert is_lost(at(started), at(back), at(now), at(looked)) is lost  # type: ignore[arg-type]
