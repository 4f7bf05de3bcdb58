"""What callers got, in few numbers, between two looks at what proxies have counted."""

from uuid import UUID

import pytest

from domain.model.answer_counts import FIRST_BYTE_MS, Answers
from domain.traffic.request_counts import (
    MOST_NAMED,
    NO_LOOK,
    WAITED_MS,
    CallersCounted,
    CallersLook,
    Requests,
    came_since,
    most_asked,
    waited_ms,
    weighed,
)

V1 = UUID(int=1)
FAST, SLOW = (7, *(0 for _ in WAITED_MS)), (*(0 for _ in WAITED_MS), 7)


def look(timed: str = "", uptime: int = 10, **of: Requests) -> CallersLook:
    counted = CallersCounted(uptime, {(name, V1): requests for name, requests in of.items()})
    return CallersLook({"edge": counted}, frozenset(timed.split()))


def test_each_request_is_in_one_class_and_each_wait_in_one_bucket() -> None:
    answers = Answers(done=20, failed=3, refused=4, redirected=5, first_byte=(1,) * (len(FIRST_BYTE_MS) + 1))
    requests = Requests.of(answers)
    assert requests.classes == (8, 5, 4, 3)
    assert requests.count == answers.done
    assert sum(requests.waited) == sum(answers.first_byte)
    assert requests.waited[0] == sum(edge <= WAITED_MS[0] for edge in FIRST_BYTE_MS)
    assert requests.waited[-1] == 1 + sum(edge > WAITED_MS[-1] for edge in FIRST_BYTE_MS)


def test_what_came_is_what_is_counted_more_and_of_a_proxy_that_began_anew_all() -> None:
    before, now = look(uptime=10, web=Requests(5, failed=2)), look(uptime=15, web=Requests(9, failed=2))
    assert came_since(NO_LOOK, before) == {}
    assert came_since(before, now) == {("web", V1): Requests(4)}
    assert came_since(now, now) == {}
    assert came_since(now, look(uptime=3, web=Requests(9, failed=2))) == {("web", V1): Requests(9, failed=2)}
    assert came_since(now, look(uptime=20, web=Requests(1))) == {("web", V1): Requests(1)}
    assert came_since(before, look(uptime=15, web=Requests(5, failed=2), mail=Requests(1))) == {
        ("mail", V1): Requests(1)
    }
    assert came_since(before, CallersLook({"other": now.counted["edge"]}, frozenset())) == {}


def test_waits_count_where_both_looks_asked_for_them() -> None:
    before, now = Requests(1, waited=FAST), Requests(2, waited=tuple(2 * count for count in FAST))
    timed = came_since(look("web", web=before), look("web", web=now))
    assert timed == {("web", V1): Requests(1, waited=FAST)}
    for then, later in (("", "web"), ("web", ""), ("", "")):
        assert came_since(look(then, web=before), look(later, web=now)) == {("web", V1): Requests(1)}


def test_those_with_the_most_requests_have_a_name_and_the_newest_count_most() -> None:
    weights = weighed({}, {(f"d{number:03}", V1): Requests(number + 1) for number in range(MOST_NAMED + 7)})
    assert most_asked(weights) == {f"d{number:03}" for number in range(7, MOST_NAMED + 7)}
    for _ in range(1000):
        weights = weighed(weights, {("late", V1): Requests(1)})
    assert set(weights) == {"late"}


@pytest.mark.parametrize(
    ("waited", "share", "within"), [(FAST, 0.5, 5), (SLOW, 0.5, None), ((0,) * 12, 0.5, None), (FAST, 1, 5)]
)
def test_a_share_waited_so_long_at_most(waited: tuple[int, ...], share: float, within: int | None) -> None:
    assert waited_ms(waited, share) == within
