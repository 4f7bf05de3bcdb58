"""How many silent looks degrade a host's replicas, and how many make the host lost."""

import pytest

from domain.replicas.silence import SilenceLimits, limits_of_silence


@pytest.mark.parametrize(
    ("seconds", "degraded", "down"), [(1, 1, 1), (2, 1, 1), (4, 1, 2), (6, 2, 3), (15, 4, 8), (60, 15, 30)]
)
def test_half_of_the_looks_degrade(seconds: float, degraded: int, down: int) -> None:
    assert limits_of_silence(seconds) == SilenceLimits(degraded, down)
