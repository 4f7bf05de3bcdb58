"""Numbers of things and lengths of time, as sentences for people have them."""

from datetime import timedelta


def number_of(count: int, noun: str) -> str:
    """1 replica, 3 replicas."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def all_of(count: int, noun: str) -> str:
    """The one replica, all 3 replicas."""
    return f"the one {noun}" if count == 1 else f"all {count} {noun}s"


def duration(span: timedelta) -> str:
    """4 s, 5 min 10 s, 3 h 20 min, 2 d 4 h; the sign is left out."""
    seconds = abs(round(span.total_seconds()))
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {unit} {rest} {smaller}" if rest else f"{seconds // size} {unit}"
    return f"{seconds} s"


WHOLE = 10_000
"""The whole that weights are parts of: all requests."""


def percent(weight: int) -> str:
    """5 % for 500."""
    return f"{weight / 100:g} %"


def weight_of(share: str) -> int:
    """The parts of WHOLE that a share is: 500 for "5%"."""
    return round(float(share[:-1]) * 100)


def doubling_pause(tries: int, *, first: float, longest: float) -> timedelta:
    """The pause before the next of some tries: `first`, 2 * first, 4 * first ... seconds, `longest` at most.

    first 1, longest 10:   tries 1  2  3  4  5  ...   1 s  2 s  4 s  8 s  10 s  ...
    """
    return timedelta(seconds=min(longest, first * 2.0 ** min(tries - 1, _HIGHEST_EXPONENT)))


_HIGHEST_EXPONENT = 60
"""Beyond it, numbers would only cost time."""
