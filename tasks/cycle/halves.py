"""Work that is refused for all of many things: tried in halves, down to the thing that is bad."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Thing = TypeVar("Thing")
Result = TypeVar("Result")


def in_halves(
    things: Sequence[Thing],
    error: Exception,
    work: Callable[[Sequence[Thing]], Result],
    blame: Callable[[Thing, Exception], Result],
) -> list[Result]:
    """What `work` makes of each half, and of its halves where it raises again. `error`: what it raised for all things.

    The thing that is bad is given to `blame`, with what it raised:

        a b c d raised  ->  [work(a b), work(c), blame(d)]
    """
    if len(things) == 1:
        return [blame(things[0], error)]
    middle = len(things) // 2
    return [*_half(things[:middle], work, blame), *_half(things[middle:], work, blame)]


def _half(
    things: Sequence[Thing],
    work: Callable[[Sequence[Thing]], Result],
    blame: Callable[[Thing, Exception], Result],
) -> list[Result]:
    try:
        return [work(things)]
    except Exception as error:  # noqa: BLE001  (whatever it is, it belongs to one thing of this half)
        return in_halves(things, error, work, blame)
