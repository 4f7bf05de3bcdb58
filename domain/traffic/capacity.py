"""What a share of the requests asks of replicas, and what share replicas carry, where `keep` carry all requests."""

from domain.text.numbers import WHOLE

_FINE = 2
"""Weights are whole hundredths of a percent: so much less of one asks for no further replica."""


def needed(keep: int, weight: int) -> int:
    """Return the least to serve on a side that gets so many of 10,000 requests; keep 10: 10 at 95 %, 1 at 5 %."""
    return min(keep, max(weight > 0, -(-(weight - _FINE) * keep // WHOLE)))


def carried(keep: int, replicas: int) -> int:
    """Return how many of 10,000 requests so many replicas answer at most; keep 3: 3,333 for one."""
    return WHOLE * replicas // keep if replicas < keep else WHOLE


def published(weight: int, replicas: int, keep: int) -> int:
    """How many of 10,000 requests proxies send to a side of this weight while so many of it are healthy.

    none of them            -> none
    enough for the weight   -> the weight
    otherwise               -> what they carry; keep 6: 1,666 of 5,000 for one, 3,333 for two
    """
    if not replicas:
        return 0
    return weight if replicas >= needed(keep, weight) else carried(keep, replicas)


def shared_out(weight: int, keep: int, canary: int, baseline: int, rest: int) -> tuple[int, int | None]:
    """Share out 10,000 requests: the canary's and its baseline's, while so many of each and of the rest are healthy.

    None for a baseline that answers with the rest: there is none, or without it the rest could not carry what is left.
    """
    given, beside = (published(weight, replicas, keep) for replicas in (canary, baseline))
    is_apart = baseline and rest and rest >= needed(keep, WHOLE - given - beside)
    return given, beside if is_apart else None
