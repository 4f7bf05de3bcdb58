"""Whether a new revision answers nobody, by what proxies tell."""

from datetime import timedelta
from uuid import UUID

import pytest

from domain.model.answer_counts import FIRST_BYTE_MS, Answers, Interval, unanswered
from tests.support.pictures.pictures import NOW, V1, V2


def answers(done: int, failed: int = 0, begun: int | None = None, **first_byte: int) -> Answers:
    """`ms_200=3`: three took at most 200 ms to their first byte; `longer`: more than the longest bucket."""
    row = [first_byte.get(f"ms_{edge}", 0) for edge in FIRST_BYTE_MS] + [first_byte.get("longer", 0)]
    return Answers(done, failed, tuple(row), 0, done if begun is None else begun)


def late(done: int) -> Answers:
    """Each was sent to another replica as well, since the first one let it wait, and was answered then."""
    return Answers(done, begun=done, again=done)


def told(*sides: tuple[float, Answers, Answers]) -> list[Interval]:
    """Intervals by seconds after the beginning, with the answers of the old and of the new revision."""
    return [
        Interval(number, NOW + timedelta(seconds=at), 1, of(old, new), 1, 1)
        for number, (at, old, new) in enumerate(sides, 1)
    ]


def of(old: Answers, new: Answers) -> dict[UUID, Answers]:
    return {revision: its for revision, its in ((V1, old), (V2, new)) if its.is_any}


QUICK = answers(50, ms_200=50)
NONE = answers(0)


@pytest.mark.parametrize(
    ("intervals", "count"),
    [
        # failed at once: each counts at once
        (told((1, QUICK, answers(7, 7))), 7),
        (told((1, QUICK, answers(7, 7)), (2, QUICK, answers(5, 5))), 12),
        # one good answer, or one that has begun, and it answers
        (told((1, QUICK, answers(7, 6))), None),
        (told((1, QUICK, answers(7, 7)), (2, QUICK, answers(1))), None),
        (told((1, QUICK, answers(0, begun=9)), (5, QUICK, answers(0, ms_300=1))), None),
        # however few it answers: how many are too few a canary's judge says, which compares them
        (told((1, QUICK, answers(3, begun=100)), (60, QUICK, NONE)), None),
        # in the beginning a first byte may be that of an answer from before, which failed
        (told((1, QUICK, answers(0)), (2, QUICK, answers(7, 7, ms_5=9))), 7),
        # streams that began then are no failures either
        (told((1, QUICK, answers(0, begun=9, ms_300=9)), (60, QUICK, NONE)), 0),
        # a 5xx has a first byte, and is none
        (told((1, QUICK, answers(7, 7, ms_5=7))), 7),
        # under way: after five seconds, or twice as long as the old revision's slowest
        (told((1, QUICK, answers(0, begun=9)), (5, QUICK, answers(0, begun=9))), 0),
        (told((1, QUICK, answers(0, begun=9)), (6, QUICK, answers(0, begun=9))), 9),
        (told((1, answers(1, ms_20000=1), answers(0, begun=9)), (40, QUICK, answers(0, begun=9))), 0),
        (told((1, answers(1, ms_20000=1), answers(0, begun=9)), (41, QUICK, answers(0, begun=9))), 9),
        # where the old revision answers nobody either, or too slowly to say, waiting is no failure
        (told((1, NONE, answers(0, begun=9)), (60, NONE, answers(0, begun=9))), 0),
        (told((1, answers(1, longer=1), answers(0, begun=9)), (600, QUICK, answers(0, begun=9))), 0),
        # an outage of both, or a caller who leaves both at once, is no fault of the new one
        (told((1, QUICK, NONE), (2, answers(9, 9), answers(26, 26))), 0),
        (told((1, answers(228, 228), answers(26, 26))), 0),
        (told((1, answers(61, 60), answers(20, 20))), 0),
        (told((1, answers(9, 9), NONE), (2, NONE, answers(26, 26))), 0),
        # nor are answers that take both so long that another replica is asked too; the new one alone is not excused
        (told((1, QUICK, NONE), (2, late(9), late(26))), 0),
        (told((1, QUICK, NONE), (2, answers(50, ms_200=50), late(26))), 26),
        # but for a tenth, or for one alone, it is not excused; nor for what the old one did before there was a new one
        (told((1, answers(100, 10), answers(20, 20))), 20),
        (told((1, answers(1, 1), answers(20, 20))), 20),
        (told((1, answers(500, 500), NONE), (2, answers(50), answers(20, 20))), 20),
        (told((1, NONE, answers(20, 20))), 20),
    ],
)
def test_who_was_sent_something_and_answered_nothing(intervals: list[Interval], count: int | None) -> None:
    assert unanswered(intervals, V1, V2) == count
