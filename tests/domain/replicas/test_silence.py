"""How many silent looks degrade a host's replicas, and how many make the host lost."""

import pytest

from domain.replicas.silence import looks_until_degraded, looks_until_down


@pytest.mark.parametrize(
    ("seconds", "degraded", "down"), [(1, 1, 1), (2, 1, 1), (4, 1, 2), (6, 2, 3), (15, 4, 8), (60, 15, 30)]
)
def test_half_of_the_looks_degrade(seconds: float, degraded: int, down: int) -> None:
    assert (looks_until_degraded(seconds), looks_until_down(seconds)) == (degraded, down)
