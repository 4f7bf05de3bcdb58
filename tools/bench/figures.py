"""A distribution in a few figures."""

from collections.abc import Sequence


def spread(values: Sequence[float]) -> dict[str, float]:
    """Count, p50, p99 and the largest, in the values' own unit; of no values the count alone."""
    if not values:
        return {"count": 0}
    ordered = sorted(values)
    return {
        "count": len(ordered),
        "p50": ordered[round(0.50 * (len(ordered) - 1))],
        "p99": ordered[round(0.99 * (len(ordered) - 1))],
        "max": ordered[-1],
    }


def percentiles(values: Sequence[float]) -> list[float]:
    """The 0th to the 100th, for drawing; empty of no values."""
    ordered = sorted(values)
    return [round(ordered[round(number / 100 * (len(ordered) - 1))], 3) for number in range(101)] if ordered else []
