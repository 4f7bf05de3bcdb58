"""A runtime that gives no answer is asked again ever more slowly: after 1, 2, 4, 8 and then each 10 seconds."""

from datetime import timedelta

from domain.text.numbers import doubling_pause


def pause_after(tries: int) -> timedelta:
    """Return how long the next try waits, after so many in a row that had no answer: 1 at least."""
    return doubling_pause(tries, first=1, longest=10)
