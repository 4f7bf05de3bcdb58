"""Finds silent worker hosts and their replicas, by looks at heartbeats; missing parts; and clocks that are wrong.

    looks in a row without a fresh sign     0 1 2 3       4 5 6 7     8 ...       (15 s of silence are 8 looks)
    its running routes                      as they are   degraded    failed: the host is down

Looks are counted, not seconds: while nobody looked, nobody could be heard.

    clock off by at least    1 s or less     more than 1 s     more than 60 s
    the host                 is as usual     is warned of      gets no new replicas while another is nearer

Nothing of Rollway is decided by a host's clock. But what runs on a host reads it: a minute is what those who check
certificates and signed tokens usually forgive. Where all hosts are that far off, the database's clock may be the one
that is wrong, so that they get replicas as usual.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from domain.model.lifecycle_events import ROUTE_CADENCES, RouteLifecycleType
from domain.text.errors import RollwayError, WrongStateError

SIGN_OF_LIFE_SECONDS = 1.0
"""The interval of a host's heartbeats."""
FRESH_SECONDS = 2.5 * SIGN_OF_LIFE_SECONDS
"""A look finds a host silent whose last sign is older."""
MISSED_AFTER = timedelta(seconds=5)
"""The silence after which people are warned about workers, or the server for proxies."""
BEAT_MISSED_AFTER = timedelta(seconds=15)
"""The silence of beat after which people are warned: its ticks wait for a free worker."""


BACK_FOR = timedelta(seconds=10)
"""For this time after a host is back, and looked at, replicas may be found that ended while it was away."""


class HostNotFoundError(RollwayError):
    """No worker host has that name."""


def looks_until_down(seconds: float) -> int:
    """Silent looks in a row after which a host is down: those that fit into `seconds` of silence, one at least."""
    return max(1, round(seconds / ROUTE_CADENCES[RouteLifecycleType.HOSTS]))


def looks_until_degraded(seconds: float) -> int:
    """Silent looks in a row after which a host's running routes are degraded: half of the others, rounded up."""
    return (looks_until_down(seconds) + 1) // 2


def is_lost(started_at: datetime, back_at: datetime | None, now: datetime, looked_at: datetime | None = None) -> bool:
    """Whether a replica ended because of its host: it was started before all workers there were away.

    A machine that was switched off or restarted ends what ran on it; so does a container with its worker, and an
    engine with its containers. `looked_at`: the first look since it is back; beat may be back much later than a worker.
    """
    return back_at is not None and started_at < back_at <= now <= max(back_at, looked_at or back_at) + BACK_FOR


def refuse_to_forget(host: str, down_since: datetime | None) -> None:
    """Only a host that is down may be forgotten. Raises WrongStateError for one that is up."""
    if down_since is None:
        raise WrongStateError(f"host {host} is up; only a host that is down can be forgotten", host=host)


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
