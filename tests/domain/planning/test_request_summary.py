"""What callers met during a rollout, in numbers and in one sentence."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from domain.model.answer_counts import FIRST_BYTE_MS, Answers, Interval
from domain.planning.sealed_receipt import request_summary, within_ms

OLD, NEW = UUID(int=1), UUID(int=2)
NAMES = {OLD: "v1", NEW: "v2"}


def first_byte(**counts: int) -> tuple[int, ...]:
    """`first_byte(ms3=4)`: four within 3 ms."""
    return (*(counts.get(f"ms{edge}", 0) for edge in FIRST_BYTE_MS), counts.get("longer", 0))


def interval(old: Answers, new: Answers, *, reporting: int = 2, live: int = 2, refused: int = 0) -> Interval:
    """Two seconds and a part of a millisecond, which is rounded away in the end."""
    return Interval(1, datetime(2026, 1, 1, tzinfo=UTC), 2.0004, {OLD: old, NEW: new}, reporting, live, refused)


def test_the_sums_of_all_intervals_are_told_by_revision() -> None:
    found = request_summary(
        [
            interval(Answers(7_000, 10, first_byte(ms3=6_990)), Answers(0), reporting=3, live=3),
            interval(Answers(830, 1, first_byte(ms3=829)), Answers(412, 9, first_byte(ms10=203, ms300=200), 2)),
        ],
        NAMES,
    )
    assert found == {
        "by_revision": {
            "v1": {
                "done": 7830,
                "failed": 11,
                "cut": 0,
                "sent": 7830,
                "mended": 0,
                "first_byte_within_ms": {"p50": 3, "p95": 3, "p99": 3},
            },
            "v2": {
                "done": 412,
                "failed": 9,
                "cut": 2,
                "sent": 412,
                "mended": 0,
                "first_byte_within_ms": {"p50": 10, "p95": 300, "p99": 300},
            },
        },
        "refused": 0,
        "seconds": 4.001,
        "fewest_reporting": 2,
        "most_live": 3,
        "said": "v1: 11 of 7,830 failed, p95 to first byte 3 ms; "
        "v2: 9 of 412 failed, 2 of them cut, p95 to first byte 300 ms; only 2 of 3 proxies told at the worst time",
    }


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (Answers(5, 5, begun=22), "5 of 22 failed, 17 not answered when it ended"),
        (Answers(0, begun=75), "0 of 75 failed, 75 not answered when it ended"),
        (
            Answers(254, 1, begun=254, again=5, again_failed=1),
            "1 of 254 failed, 4 answered by another replica than the first",
        ),
    ],
)
def test_what_was_sent_and_not_answered_or_answered_by_another_is_told(new: Answers, said: str) -> None:
    assert request_summary([interval(Answers(3), new)], NAMES)["said"] == f"v1: 0 of 3 failed; v2: {said}"


@pytest.mark.parametrize(
    ("reporting", "refused", "said"),
    [
        (2, 0, "v1: 0 of 3 failed; v2: no requests recorded"),
        (2, 1_200, "v1: 0 of 3 failed; v2: no requests recorded; 1,200 refused without a replica"),
        (1, 0, "v1: 0 of 3 failed; v2: no requests recorded; only 1 of 2 proxies told at the worst time"),
        (0, 0, "not measured: no proxy told what it has answered"),
    ],
)
def test_what_is_not_known_is_said(reporting: int, refused: int, said: str) -> None:
    found = request_summary([interval(Answers(3), Answers(), reporting=reporting, refused=refused)], NAMES)
    assert found["said"] == said


@pytest.mark.parametrize(
    ("counts", "share", "within"),
    [
        (first_byte(), 0.5, None),
        (first_byte(ms1=1), 0.99, 1),
        (first_byte(ms1=95, ms50=5), 0.95, 1),
        (first_byte(ms1=94, ms50=6), 0.95, 50),
        (first_byte(ms1=1, longer=99), 0.5, None),
    ],
)
def test_a_share_is_within_the_edge_of_its_bucket(counts: tuple[int, ...], share: float, within: int | None) -> None:
    assert within_ms(counts, share) == within
