"""What replicas are waited for, and by which inequalities: each in words, and as numbers that say the same."""

import pytest

from domain.cycle.transitions import Bounds, wait_of
from domain.model.decision import Decision, RouteChanges, Waits, WaitsFor
from domain.strategies.budget import Buckets, Budget
from domain.strategies.messages import for_replicas, for_stopping
from tests.support.pictures.pictures import NOW, V1, V2, routes_of

THREE = Budget(3, 4, 3)


@pytest.mark.parametrize(
    ("picture", "budget", "wave", "blocked"),
    [
        ("■■■|◇", THREE, True, [(1, ">", 0), (0, "<", 3), (5, ">", 4), (2, "<", 3)]),
        ("■■■|◇", THREE, False, [(0, "<", 3), (5, ">", 4), (2, "<", 3)]),
        ("■■|■", THREE, True, [(5, "<", 10), (1, ">", 0), (0, "<", 3), (2, "<", 3)]),
        ("■■|■◇", THREE, True, [(2, ">", 0), (0, "<", 3), (5, ">", 4), (2, "<", 3)]),
        ("~~|◇◇", Budget(2, 2, 0, alone=True), False, [(2, ">", 0), (0, "<", 2), (3, ">", 2)]),
        ("|▲", THREE, True, [(0, "<", 3)]),
    ],
)
def test_each_inequality_has_its_numbers(
    picture: str,
    budget: Budget,
    wave: bool,  # noqa: FBT001  (a column of the table)
    blocked: list[tuple[float, str, float]],
) -> None:
    buckets = Buckets.of(routes_of(picture, V1, V2, status_for=5), V2, NOW, 10)
    found = list(for_replicas("", buckets, budget, NOW, min_ready=10, wave=wave).blocked)
    assert [(each.value, each.relation, each.limit) for each in found] == blocked
    assert all(each.holds for each in found)


def test_what_stops_is_waited_for_until_none_does() -> None:
    (stops,) = for_stopping("", routes_of("~", V1, V2)).blocked
    assert (stops.value, stops.limit, stops.words) == (1, 0, "1 stopping > 0")


def test_a_wait_is_what_a_decision_says_that_changes_nothing() -> None:
    told = wait_of(Decision.wait(Waits(WaitsFor.TIME, "later"), NOW), Bounds(), NOW)
    assert told == ("waiting: later", NOW)
    assert wait_of(Decision.moved("continues", RouteChanges.create(V1, 1), NOW), Bounds(), NOW) is None
