"""What callers got, in few numbers, between two looks at what proxies have counted."""

from uuid import UUID

import pytest

from domain.model.answer_counts import FIRST_BYTE_MS, Answers
from domain.traffic.request_counts import (
    CLASSES,
    MOST_NAMED,
    NO_LOOK,
    NO_REQUESTS,
    WAITED_MS,
    CallersCounted,
    CallersLook,
    Requests,
    came_since,
    losses_in_words,
    most_asked,
    rate,
    waited_ms,
    weighed,
)

V1, V2 = UUID(int=1), UUID(int=2)
FAST, SLOW = (7, *(0 for _ in WAITED_MS)), (*(0 for _ in WAITED_MS), 7)


def look(timed: str = "", uptime: int = 10, **of: Requests) -> CallersLook:
    counted = CallersCounted(uptime, {(name, V1): requests for name, requests in of.items()})
    return CallersLook({"edge": counted}, frozenset(timed.split()))


def test_the_classes_and_buckets_that_rows_and_metrics_have_stay_as_they_are() -> None:
    assert CLASSES == ("2xx", "3xx", "4xx", "failed")
    assert WAITED_MS == (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
    assert NO_REQUESTS.waited == (0,) * 12
    assert Requests.from_row(1, 2, 3, 4, [0] * 12) == Requests(1, 2, 3, 4)
    assert MOST_NAMED == 100


@pytest.mark.parametrize(
    ("edge", "bucket"), [(1, 0), (5, 0), (6, 1), (10, 1), (200, 5), (220, 6), (10_000, 10), (11_000, 11), (300_000, 11)]
)
def test_a_wait_is_counted_up_to_its_upper_edge(edge: int, bucket: int) -> None:
    first_byte = tuple(3 * (ms == edge) for ms in FIRST_BYTE_MS)
    waited = Requests.of(Answers(done=3, first_byte=(*first_byte, 0))).waited
    assert waited == tuple(3 * (place == bucket) for place in range(12))


def test_where_proxies_count_more_bad_answers_than_answers_none_was_fine() -> None:
    """The two are read one after the other."""
    assert Requests.of(Answers(done=3, failed=2, refused=1, redirected=1)).classes == (0, 1, 1, 2)
    assert Requests.of(Answers(done=5, failed=2, refused=1, redirected=1)).classes == (1, 1, 1, 2)


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


def test_what_came_at_two_proxies_is_added_up_by_the_revision_that_answered() -> None:
    few, many = Requests(1, 2, 3, 4, FAST), Requests(10, 20, 30, 40, SLOW)
    began = CallersLook({node: CallersCounted(1, {}) for node in ("a", "b")}, frozenset({"web"}))
    counted = {
        "a": CallersCounted(9, {("web", V1): few, ("web", V2): many}),
        "b": CallersCounted(9, {("web", V1): many, ("api", V1): NO_REQUESTS}),
    }
    both = Requests(11, 22, 33, 44, (7, *FAST[1:-1], 7))
    assert came_since(began, CallersLook(counted, frozenset({"web"}))) == {("web", V1): both, ("web", V2): many}


def test_where_fewer_are_counted_than_before_all_have_come_since() -> None:
    before, now = Requests(5, refused=2, waited=FAST), Requests(9, refused=1, waited=SLOW)
    assert now.since(before, is_timed=True) == now
    assert now.since(before, is_timed=False) == Requests(9, refused=1)
    assert now.since(Requests(4, refused=1, waited=NO_REQUESTS.waited), is_timed=True) == Requests(5, waited=SLOW)


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


def test_a_request_counts_a_hundredth_less_with_each_look_until_it_counts_less_than_one() -> None:
    assert weighed({"web": 200, "api": 1 / 0.99, "old": 1}, {}) == {"web": 198, "api": pytest.approx(1)}
    came = {("web", V1): Requests(1, 2, 3, 4), ("web", V2): Requests(5), ("new", V1): Requests(1)}
    assert weighed({"web": 200}, came) == {"web": 213, "new": 1}


def test_of_deployments_that_are_asked_alike_the_first_by_name_has_one() -> None:
    asked = {f"d{number:03}": 7.0 for number in range(MOST_NAMED + 1)}
    assert most_asked(asked) == asked.keys() - {f"d{MOST_NAMED}"}


@pytest.mark.parametrize(
    ("waited", "share", "within"),
    [
        (FAST, 0.5, 5),
        (SLOW, 0.5, None),
        ((0,) * 12, 0.5, None),
        (FAST, 1, 5),
        ((1, *(0,) * 11), 0.5, 5),
        ((9, 1, *(0,) * 10), 0.9, 5),
        ((9, 1, *(0,) * 10), 0.95, 10),
        ((0, 50, 45, 4, *(0,) * 7, 1), 0.99, 50),
        ((0, 50, 45, 4, *(0,) * 7, 1), 0.999, None),
    ],
)
def test_a_share_waited_so_long_at_most(waited: tuple[int, ...], share: float, within: int | None) -> None:
    assert waited_ms(waited, share) == within


@pytest.mark.parametrize(
    ("per_second", "words"), [(0.123, "0.12"), (1, "1"), (9.94, "9.9"), (10, "10"), (10.6, "11"), (1234.5, "1234")]
)
def test_a_rate_has_two_digits_and_from_ten_on_none_behind_the_point(per_second: float, words: str) -> None:
    assert rate(per_second) == words


@pytest.mark.parametrize(
    ("failed", "revisions", "words"),
    [
        (0, [], ""),
        (0.5, ["v2"], "0.5 of 40 requests/s failed in the last 2 minutes (1.25%): v2"),
        (12, ["v1", ""], "12 of 40 requests/s failed in the last 2 minutes (30.00%): v1, no replica was there"),
    ],
)
def test_losses_in_words(failed: float, revisions: list[str], words: str) -> None:
    assert losses_in_words(40, failed, revisions) == words
