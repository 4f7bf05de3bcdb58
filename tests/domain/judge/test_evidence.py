"""What a judge counts as slow: from which bucket of the control's first bytes on."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.judge.evidence import sent_requests
from domain.judge.judge import Found, judge
from domain.judge.judge_spec import Judge, Slow
from domain.model.answer_counts import FIRST_BYTE_MS, Answers
from domain.model.canary import Evidence, Exposure
from tests.domain.planning.test_request_summary import first_byte
from tests.support.pictures.pictures import NOW
from tests.support.worlds.folding import folded, slow_of

SLOW = Slow(by_at_least="1ms", warm_up="0s")
BUCKETS = len(FIRST_BYTE_MS) + 1
NOBODY_WAITED = first_byte()
EDGES = (*FIRST_BYTE_MS, math.inf)


def seen(control: tuple[int, ...]) -> Evidence:
    """The canary has one answer in each bucket."""
    return Evidence(NOW, Answers(BUCKETS, 0, (1,) * BUCKETS), Answers(0, 0, control), 1, 1)


@pytest.mark.parametrize(
    ("before", "percentile", "slow_above_ms"),
    [
        (first_byte(ms1=100), "p50", 1),
        (first_byte(ms1=95, ms5=5), "p95", 1),
        (first_byte(ms1=94, ms5=6), "p95", 5),
        (first_byte(ms1=949, ms5=51), "p95", 5),
        (first_byte(ms1=50, ms5=49, ms300=1), "p99", 5),
        (first_byte(ms1=50, ms5=49, ms300=1), "p99.9", 300),
        (first_byte(ms1=10, longer=90), "p50", math.inf),
    ],
)
def test_what_is_slow_is_beyond_the_bucket_of_the_percentile(
    before: tuple[int, ...], percentile: str, slow_above_ms: float
) -> None:
    slow = SLOW.model_copy(update={"of": percentile})
    _, counts = slow_of([seen(before), seen((1,) * BUCKETS)], slow)
    assert counts.canary == counts.control == BUCKETS
    assert counts.control_failed == sum(edge > slow_above_ms for edge in EDGES)
    next_edge = min(edge for edge in EDGES if edge >= slow_above_ms + 2)
    assert counts.canary_failed == sum(edge > next_edge for edge in EDGES)


@pytest.mark.parametrize(
    ("edge", "by_at_least", "slow_above_ms"),
    [
        (1, "20%", 3),  # 2.4 ms, and what is told as 1 ms may be nearly 2
        (20, "20%", 27),  # 25.2 ms
        (100, "20%", 130),
        (100, "100%", 220),
        (100, "50ms", 160),
        (100, "1ms", 110),
        (300_000, "20%", math.inf),
    ],
)
def test_how_much_later_the_canary_must_be(edge: int, by_at_least: str, slow_above_ms: float) -> None:
    slow = Slow(by_at_least=by_at_least, warm_up="0s")
    _, counts = slow_of([seen(first_byte(**{f"ms{edge}": 100})), seen(NOBODY_WAITED)], slow)
    assert counts.canary_failed == sum(each > slow_above_ms for each in EDGES if slow_above_ms < math.inf)


def test_who_waits_for_longer_than_a_slow_answer_takes_is_slow_before_it_comes() -> None:
    old = Answers(100, 0, first_byte(ms20=100), begun=100)

    def waiting(second: int, answered: int) -> Evidence:
        new = Answers(answered, 0, first_byte(ms20=answered), begun=10)
        return Evidence(NOW + timedelta(seconds=second), new, old, 1, 1)

    settings = Judge(errors=None, slow=Slow(warm_up="0s"))
    assert not folded(settings, [waiting(second, 10) for second in range(20)]).waiting.canary
    told = [waiting(second, 0) for second in range(20)]
    # 3 s before the twentieth interval ended the seventeenth; in the first two nothing was known of the control
    sums = folded(settings, told, NOW)
    assert (sums.waiting.canary, sums.waiting.control) == (150, 0)
    found = judge(settings, sums, NOW, told[-1].at)
    assert found.finding is Found.HARM
    assert found.sentence.startswith(
        "slow answers: canary at least 150 waited for longer than 27 ms, control at most 0,"
    )


def test_who_waits_for_much_longer_than_any_answer_has_failed_though_no_caller_leaves_and_slow_is_not_judged() -> None:
    old = Answers(100, 0, first_byte(ms300=100), begun=100)

    def waiting(second: int, answered: int, others: Answers = old) -> Evidence:
        new = Answers(answered, 0, first_byte(ms300=answered), begun=10)
        return Evidence(NOW + timedelta(seconds=second), new, others, 1, 1)

    told = [waiting(second, 0) for second in range(20)]
    sums = folded(Judge(), told, NOW)
    found = judge(Judge(), sums, NOW, told[-1].at)
    assert found.finding is Found.HARM
    assert found.sentence.startswith(
        "failures: canary at least 120 waited for longer than 5,500 ms, control at most 0, worse"
    )
    hang = replace(old, done=0, first_byte=first_byte())
    both = [waiting(0, 0), *(waiting(second, 0, hang) for second in range(1, 60))]
    assert judge(Judge(), folded(Judge(), both, NOW), NOW, both[-1].at).finding is not Found.HARM, "nobody answers now"


def test_who_is_answered_no_later_than_one_in_a_hundred_of_the_control_has_not_failed() -> None:
    old = Answers(100, 0, first_byte(ms300=99, ms20000=1), begun=100)

    def slowly(second: int) -> Evidence:
        answered = 10 if second >= 10 else 0
        new = Answers(answered, 0, first_byte(ms10000=answered), begun=10)
        return Evidence(NOW + timedelta(seconds=second), new, old, 1, 1)

    told = [slowly(second) for second in range(60)]
    assert judge(Judge(), folded(Judge(), told, NOW), NOW, told[-1].at).finding is not Found.HARM


def test_what_comes_while_a_replica_warms_up_is_not_compared() -> None:
    def at(seconds: int, up: int | None = None, canary: int = BUCKETS) -> Evidence:
        youngest_at = None if up is None else NOW + timedelta(seconds=up)
        return replace(
            seen(first_byte(ms1=100)),
            at=NOW + timedelta(seconds=seconds),
            canary=Answers(canary, 0, (canary // BUCKETS,) * BUCKETS, begun=canary),
            youngest_at=youngest_at,
        )

    # no request yet; its first; one is over; a replica comes; it is warm
    told = [at(0, canary=0), at(20, 10), at(49, 10), at(51, 10), at(60, 55), at(86, 55)]
    assert [bool(counts.canary) for counts in slow_of(told, Slow())] == [False, False, False, True, False, True]
    assert [counts.canary for counts in slow_of(told, Slow(warm_up="0s"))] == [0, *[BUCKETS] * 5]


def test_before_a_hundred_answers_of_the_control_nothing_is_called_slow() -> None:
    judged = [slow_of([seen(first_byte(ms1=known)), seen(NOBODY_WAITED)], SLOW)[1].canary for known in (99, 100)]
    assert judged == [0, BUCKETS]


@pytest.mark.parametrize("window", [1, 2, 4, 8, 16, 32, 64])
def test_the_share_of_a_canary_is_looked_for_in_the_last_1_2_4_up_to_64_intervals(window: int) -> None:
    """A failure may have been sent in any of them: in the older half of a window it got three times as many."""
    few, many = (40, 960), (120, 880)
    newest_first = [few] * (window // 2) + [many] * (window - window // 2) + [few] * (64 - window)
    lowest, highest = sent_requests(Exposure(recent=tuple(reversed(newest_first)))).shares
    assert highest == pytest.approx(0.12 if window == 1 else 0.08)
    assert lowest >= 0.04


@pytest.mark.parametrize(
    ("recent", "shares"),
    [
        (((5, 0),), (0, 0)),
        (((0, 5),), (0, 0)),
        (((1, 9),), (0.1, 0.1)),
        (((39, 61), (1, 9)), (40 / 110, 40 / 110)),  # 40 of the canary are enough: those of one interval are luck
        (((30, 70), (1, 9)), (0.1, 31 / 110)),
    ],
)
def test_where_a_window_has_enough_requests_of_the_canary_the_others_do_not_count(
    recent: tuple[tuple[int, int], ...], shares: tuple[float, float]
) -> None:
    assert sent_requests(Exposure(recent=recent)).shares == pytest.approx(shares)
