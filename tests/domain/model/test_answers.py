"""What came in between two looks at a proxy's counters, as a table; and the sums of several proxies."""

from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest

from domain.model.answer_counts import (
    FIRST_BYTE_MS,
    Answers,
    Copies,
    Counters,
    Look,
    counted_since,
    next_interval,
    together,
)
from tests.support.pictures.pictures import NOW

OLD, NEW = UUID(int=1), UUID(int=2)
NONE_SLOWER = (0,) * len(FIRST_BYTE_MS)


def answers(done: int, failed: int = 0) -> Answers:
    """All that did not fail had their first byte within a millisecond."""
    return Answers(done, failed, (done - failed, *NONE_SLOWER))


def counters(uptime: int, old: int, new: int | None = None, refused: int = 0) -> Counters:
    of = {OLD: answers(old)} | ({} if new is None else {NEW: answers(new)})
    return Counters(uptime, of, refused)


@pytest.mark.parametrize(
    ("before", "now", "old", "new", "refused"),
    [
        # before              now                     since: old, new, refused
        (None, counters(9, 70, 3, 5), 0, 0, 0),  # the first look: all of that was before
        (counters(9, 70), counters(11, 75), 5, 0, 0),
        (counters(9, 70), counters(11, 75, 4), 5, 4, 0),  # a revision's first answers
        (counters(9, 70, 4, 1), counters(11, 70, 4, 3), 0, 0, 2),
        (counters(9, 70), counters(11, 6), 6, 0, 0),  # counters fell: it has restarted
        (counters(9, 70), counters(1, 90), 90, 0, 0),  # it is younger: restarted, and has answered more already
        (counters(9, 70, 4), counters(11, 75), 75, 0, 0),  # a revision is gone: restarted
        (counters(9, 70, 4, 8), counters(11, 75, 5, 2), 75, 5, 2),  # it refused fewer: restarted
    ],
)
def test_counters_that_restart_count_anew(
    before: Counters | None, now: Counters, old: int, new: int, refused: int
) -> None:
    since = counted_since(before, now)
    assert since.of.get(OLD, Answers()) == answers(old)
    assert since.of.get(NEW, Answers()) == answers(new)
    assert since.refused == refused


def test_the_edges_stay_as_they_are_for_what_is_stored_was_counted_by_them() -> None:
    assert (len(FIRST_BYTE_MS), sum(FIRST_BYTE_MS)) == (114, 1_906_608)
    assert list(FIRST_BYTE_MS) == sorted(set(FIRST_BYTE_MS))
    assert all(after <= 1.15 * before for before, after in pairwise(FIRST_BYTE_MS[9:-5]))
    assert all(edge % 10 ** max(0, len(str(edge)) - 2) == 0 for edge in FIRST_BYTE_MS), "an Envoy keeps two digits"


@pytest.mark.parametrize(
    ("before", "now", "since"),
    [
        (Copies(), Copies(4, 1), Copies(4, 1)),
        (Copies(40, 3), Copies(44, 5), Copies(4, 2)),
        (Copies(40, 3), Copies(40, 3), Copies()),
        (Copies(40, 3), Copies(4, 3), Copies(4, 3)),  # the mirror has begun anew
        (Copies(40, 3), Copies(44, 2), Copies(44, 2)),
    ],
)
def test_copies_since_the_last_look(before: Copies, now: Copies, since: Copies) -> None:
    assert now.since(before) == since


def test_answers_are_added_and_taken_away_count_by_count() -> None:
    many, few = (
        Answers(9, 5, (4, *NONE_SLOWER), 2, 12, 3, 4, 1),
        Answers(3, 2, (1, *NONE_SLOWER), 1, 5, 2, 2, 1),
    )
    assert many + few == Answers(12, 7, (5, *NONE_SLOWER), 3, 17, 5, 6, 2)
    assert many - few == Answers(6, 3, (3, *NONE_SLOWER), 1, 7, 1, 2, 0)
    assert [(many - few).is_possible, (few - many).is_possible] == [True, False]
    assert not any(its.is_possible for its in (Answers(cut=-1), Answers(again=-1), Answers(again_failed=-1)))


def test_a_first_try_failed_whether_another_replica_answered_or_not() -> None:
    assert Answers(done=20, failed=5, again=4, again_failed=1).failed_first == 8


def test_an_interval_begins_where_the_one_before_it_ended_and_is_never_shorter_than_nothing() -> None:
    look = Look(NOW, {"a": counters(11, 75)}, 2)
    begun = next_interval((6, NOW - timedelta(seconds=1.5)), {"a": counters(9, 70)}, look)
    assert (begun.id, begun.at, begun.seconds, begun.reporting, begun.live) == (7, NOW, 1.5, 1, 2)
    assert begun.of == {OLD: answers(5)}
    assert next_interval((6, NOW + timedelta(seconds=5)), {}, look).seconds == 0, "the clock was set back"


def test_no_count_is_ever_below_zero_when_only_a_bucket_has_fallen() -> None:
    before = Counters(9, {OLD: answers(70)})
    now = Counters(11, {OLD: Answers(80, 79, answers(1).first_byte)})
    assert counted_since(before, now) == now


def test_the_sums_of_proxies_leave_out_who_had_none() -> None:
    parts = [Counters(9, {OLD: answers(3, 1), NEW: answers(0)}, 1), Counters(9, {OLD: answers(4)}, 2)]
    assert together(parts) == ({OLD: answers(7, 1)}, 3)
    assert together([]) == ({}, 0)
