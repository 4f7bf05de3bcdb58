"""Which routes are live, and when a sick one has been sick for too long."""

from datetime import timedelta

import pytest

from domain.model.states import RouteStatus
from domain.strategies.budget import SICK_GRACE_SECONDS, Buckets, Budget
from tests.support.pictures.pictures import NOW, V1, V2, routes_of


def test_live_is_whatever_is_not_on_its_way_out_or_gone() -> None:
    gone = {status for status in RouteStatus if not status.is_active}
    assert gone == {RouteStatus.TERMINATING, RouteStatus.TERMINATED, RouteStatus.FAILED}


@pytest.mark.parametrize("drawn", ["▲", "△"])
@pytest.mark.parametrize(("sick_for", "is_replaceable"), [(0, False), (29.9, False), (30, True), (31, True)])
def test_a_sick_one_can_be_replaced_or_has_a_time_at_which_it_can(
    drawn: str, sick_for: float, is_replaceable: object
) -> None:
    (sick,) = routes = routes_of(drawn, V1, V2, status_for=sick_for)
    buckets = Buckets.of(routes, V2, NOW)
    assert SICK_GRACE_SECONDS == 30
    assert (buckets.replaceable(NOW) == (sick,)) is is_replaceable
    assert (buckets.next_change_at(NOW) is None) is is_replaceable


@pytest.mark.parametrize(("min_ready_seconds", "sick_for", "due"), [(15, 10, 5), (60, 10, 20), (10, 30, None)])
def test_time_alone_changes_something_when_the_first_of_all_clocks_ends(
    min_ready_seconds: float, sick_for: float, due: float | None
) -> None:
    buckets = Buckets.of(routes_of("■▲", V1, V2, status_for=sick_for), V2, NOW, min_ready_seconds)
    assert buckets.next_change_at(NOW) == (None if due is None else NOW + timedelta(seconds=due))


def test_one_that_is_parked_is_looked_at_when_it_has_been_kept_long_enough() -> None:
    buckets = Buckets.of(routes_of("▫|■", V1, V2), V2, NOW)
    assert buckets.next_change_at(NOW) == NOW + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("counts_stopping", "ceiling", "room"), [(False, 5, 2), (True, 5, 1), (False, 3, 0), (True, 2, 0)]
)
def test_room_is_what_the_ceiling_leaves_and_never_less_than_none(
    ceiling: int, room: int, *, counts_stopping: bool
) -> None:
    buckets = Buckets.of(routes_of("■■~▫|■", V1, V2), V2, NOW)
    budget = Budget(2, ceiling, 2, counts_stopping)
    assert buckets.room(budget) == room
    assert buckets.occupied(budget) == ("3 live + 1 stopping" if counts_stopping else "3 live")
