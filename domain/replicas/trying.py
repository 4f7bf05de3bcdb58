"""A runtime that gives no answer is asked again ever more slowly: after 1, 2, 4, 8 and then each 10 seconds."""

from datetime import timedelta

_LONGEST_SECONDS = 10
_HIGHEST_EXPONENT = 4


def pause_after(tries: int) -> timedelta:
    """How long the next try waits, after so many in a row that had no answer: 1 at least."""
    return timedelta(seconds=min(_LONGEST_SECONDS, 2 ** min(tries - 1, _HIGHEST_EXPONENT)))
