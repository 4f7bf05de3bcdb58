"""What `make years` calls growth without end."""

import pytest

from tools.bench.years.verdict import growths


@pytest.mark.parametrize(
    ("name", "samples", "goes_on"),
    [
        ("rows of routes", [74, 80, 74, 75, 74, 76], False),
        ("rows of routes", [100, 200, 300, 400, 500, 600], True),
        ("rows of receipts", [100, 200, 300, 400, 500, 600], False),
        ("memory of beat", [80 << 20, 90 << 20, 81 << 20, 95 << 20, 81 << 20, 99 << 20], False),
        ("memory of beat", [80 << 20, 80 << 20, 81 << 20, 82 << 20, 83 << 20, 84 << 20], True),
        ("memory of worker1", [120 << 20, 125 << 20, 130 << 20, 131 << 20, 133 << 20, 134 << 20], False),
        ("memory of worker2", [120 << 20, 125 << 20, 130 << 20, 131 << 20, 134 << 20, 135 << 20], True),
        ("memory of api", [120 << 20, 125 << 20, 130 << 20, 131 << 20, 135 << 20, 136 << 20], False),
        ("memory of api", [120 << 20, 125 << 20, 130 << 20, 131 << 20, 136 << 20, 137 << 20], True),
    ],
)
def test_what_is_larger_at_the_end_than_in_the_middle_goes_on(name: str, samples: list[int], *, goes_on: bool) -> None:
    (found,) = growths([name], [[sample] for sample in samples], rollouts=600)
    assert found.goes_on is goes_on
