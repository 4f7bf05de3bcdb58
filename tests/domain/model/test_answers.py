"""What came in between two looks at a proxy's counters, as a table; and the sums of several proxies."""

from dataclasses import replace
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
    not_proven,
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


@pytest.mark.parametrize(
    "count", ["done", "failed", "cut", "begun", "refused", "again", "again_failed", "redirected", "first_byte"]
)
def test_no_count_of_answers_is_below_zero_and_each_is_added_and_taken_away(count: str) -> None:
    def having(number: int) -> Answers:
        return Answers(**{count: (number, *NONE_SLOWER) if count == "first_byte" else number})  # type: ignore[arg-type]

    assert (having(0).is_possible, having(-1).is_possible) == (True, False)
    assert (having(5) + having(2), having(5) - having(2)) == (having(7), having(3))


@pytest.mark.parametrize(
    ("its", "is_any"),
    [
        (Answers(), False),
        (Answers(done=1), True),
        (Answers(begun=1), True),
        (Answers(first_byte=(*NONE_SLOWER, 1)), True),
    ],
)
def test_who_was_sent_a_request_or_answered_one_had_some(its: Answers, *, is_any: bool) -> None:
    assert its.is_any is is_any


@pytest.mark.parametrize(
    ("count", "remaining", "sentence"),
    [
        (0, None, "not proven yet: v2 has answered nobody, and goes back at 20"),
        (1, None, "not proven yet: v2 has answered none of 1 request, and goes back at 20"),
        (7, 40, "not proven yet: v2 has answered none of 7 requests, and goes back at 20, counted for 40 s more"),
        (7, 0, "not proven yet: v2 has answered none of 7 requests, and goes back at 20, counted for 0 s more"),
        (7, -9, "not proven yet: v2 has answered none of 7 requests, and goes back at 20, counted for 0 s more"),
    ],
)
def test_what_has_answered_nobody_says_how_many_are_left(count: int, remaining: int | None, sentence: str) -> None:
    left = None if remaining is None else timedelta(seconds=remaining)
    assert not_proven("v2", count, 20, left) == sentence


def test_an_interval_has_the_copies_of_all_proxies_and_the_requests_under_way_at_its_end() -> None:
    now = {
        "a": replace(counters(11, 75), copies=Copies(9, 2), under_way={OLD: 3}),
        "b": replace(counters(11, 75), copies=Copies(5, 1), under_way={OLD: 1, NEW: 2}),
    }
    before = {"a": replace(counters(9, 70), copies=Copies(5, 2)), "b": counters(11, 70)}
    interval = next_interval((6, NOW), before, Look(NOW, now, 2))
    assert (interval.copies, interval.under_way) == (Copies(9, 1), {OLD: 4, NEW: 2})
    assert (interval.of, interval.reporting) == ({OLD: answers(10)}, 2)


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
