"""Route changes: when there is one, and what two of them come to."""

from datetime import timedelta
from uuid import UUID

import pytest

from domain.model.decision import RouteChanges, RouteCreatorSpec
from domain.model.states import TrafficStatus
from tests.support.pictures.pictures import NOW, V1, V2

A, B = UUID(int=1), UUID(int=2)
NOTHING = RouteChanges()
ONE_OF_EACH = [
    RouteChanges.create(V2, 1),
    RouteChanges.promote([A]),
    RouteChanges.drain([A]),
    RouteChanges.park([A], NOW),
]


@pytest.mark.parametrize("change", ONE_OF_EACH)
def test_each_kind_of_change_alone_is_a_change(change: RouteChanges) -> None:
    assert change
    assert change + NOTHING == NOTHING + change == change


@pytest.mark.parametrize(
    "nothing",
    [
        NOTHING,
        RouteChanges.create(V2, 0),
        RouteChanges.create(V2, -1),
        RouteChanges.promote([]),
        RouteChanges.drain([]),
        RouteChanges.park([], NOW),
    ],
)
def test_a_change_of_no_route_is_none(nothing: RouteChanges) -> None:
    assert not nothing
    assert nothing == NOTHING


def test_two_changes_together_are_what_both_do_and_the_first_says_how_long_to_park() -> None:
    first = RouteChanges((RouteCreatorSpec(V1, 1),), (A,), (A,), (A,), NOW)
    second = RouteChanges((RouteCreatorSpec(V2, 2),), (B,), (B,), (B,), NOW + timedelta(1))
    assert first + second == RouteChanges(
        (RouteCreatorSpec(V1, 1), RouteCreatorSpec(V2, 2)), (A, B), (A, B), (A, B), NOW
    )
    assert (first + second).created == 3
    assert (second + first).park_until == NOW + timedelta(1)


def test_what_is_created_takes_requests_unless_it_is_to_wait_and_may_replace_others() -> None:
    assert RouteChanges.create(V2, 2).rollout_specs == (RouteCreatorSpec(V2, 2, TrafficStatus.ACTIVE),)
    waiting = RouteChanges.create(V2, 1, TrafficStatus.INACTIVE, drain=(A,))
    assert waiting.rollout_specs == (RouteCreatorSpec(V2, 1, TrafficStatus.INACTIVE),)
    assert waiting.drain_route_ids == (A,)
    assert RouteChanges.create(V2, 0, drain=(A,)) == RouteChanges.drain([A])
