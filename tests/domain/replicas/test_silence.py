"""How many silent looks degrade a host's replicas, and how many make the host lost."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.replicas.silence import is_lost, looks_until_degraded, looks_until_down


@pytest.mark.parametrize(
    ("seconds", "degraded", "down"), [(1, 1, 1), (2, 1, 1), (4, 1, 2), (6, 2, 3), (15, 4, 8), (60, 15, 30)]
)
def test_half_of_the_looks_degrade(seconds: float, degraded: int, down: int) -> None:
    assert (looks_until_degraded(seconds), looks_until_down(seconds)) == (degraded, down)


@pytest.mark.parametrize(
    ("started", "back", "now", "lost"),
    [
        (10, None, 20, False),  # the host was never away
        (10, 15, 16, True),
        (10, 15, 25, True),
        (10, 15, 26, False),  # it would have been found by then: its revision ended it
        (16, 15, 17, False),  # it was started by the host that is back
    ],
)
def test_what_was_started_before_its_host_was_away_may_be_lost_for_ten_seconds(
    started: int, back: int | None, now: int, *, lost: bool
) -> None:
    def at(seconds: int) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)

    assert is_lost(at(started), None if back is None else at(back), at(now)) is lost
