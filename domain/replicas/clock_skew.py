"""Measures the offset of a host's clock from the database's, and its consequences.

    off by at least    1 s or less     more than 1 s     more than 60 s
    the host           is as usual     is warned of      gets no new replicas while another is nearer

Nothing of Rollway is decided by a host's clock. But what runs on a host reads it: a minute is what those who check
certificates and signed tokens usually forgive. Where all hosts are that far off, the database's clock may be the one
that is wrong, so that they get replicas as usual.
"""

from collections.abc import Mapping

_WARNED_ABOVE_SECONDS = 1.0
_TOO_FAR_ABOVE_SECONDS = 60.0


def clock_offset(before: float, after: float, theirs: float) -> float:
    """By how many seconds a clock is ahead of another at least; less than 0 for one that is behind.

    `theirs` was read between `before` and `after`, which its own clock says. A slow answer makes no clock wrong: within
    the round trip it counts as right.
    """
    if theirs < before:
        return before - theirs
    return min(0.0, after - theirs)


def is_warned_of(seconds: float) -> bool:
    """Whether this offset or jump of a clock deserves a warning."""
    return abs(seconds) > _WARNED_ABOVE_SECONDS


def is_too_far(seconds: float) -> bool:
    """Whether this offset keeps new replicas from a host while another clock is nearer."""
    return abs(seconds) > _TOO_FAR_ABOVE_SECONDS


def seconds_set_back(showed: float, passed: float, shows: float) -> float:
    """By how many seconds a clock was set back, which showed and now shows these times, `passed` seconds apart."""
    return max(0.0, showed + passed - shows)


def seconds_set_forward(showed: float, passed: float, shows: float) -> float:
    """By how many seconds a clock was set forward at least, as `seconds_set_back` says it of one that was set back."""
    return max(0.0, shows - showed - passed)


def hosts_in_time(offsets: Mapping[str, float]) -> list[str]:
    """The hosts of these that may get new replicas, by name."""
    near = [host for host, offset in offsets.items() if not is_too_far(offset)]
    return sorted(near or offsets)
