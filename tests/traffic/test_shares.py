"""Which part of the requests each side of a canary gets, by who is healthy of it."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from domain.model.states import RouteStatus
from domain.traffic.capacity import sides
from domain.traffic.snapshot import Canary, RouteInTraffic
from tests.support.pictures.traffic_samples import deployment, route

SICK = RouteStatus.UNHEALTHY


def new(number: int, **settings: Any) -> RouteInTraffic:
    """Healthy, in traffic, of the revision that is rolled out."""
    return route(number, **{"revision": "v2", "is_candidate": True, "is_current": False, **settings})


@pytest.mark.parametrize(
    ("picture", "floor", "weight", "given"),
    [
        # all of them are there: the weight
        ("■■■|■■■", 6, 5000, 5000),
        ("■■■■■■■■■|■", 10, 1002, 1002),
        # of a canary of three two are lost, and of three old ones one: each of the three left gets a third
        ("■■|■", 6, 5000, 3333),
        # one of nine canary replicas is left: it gets its part of the requests, and the old ones theirs
        ("■|■", 10, 9000, 5000),
        ("■■■■■■■■■|■", 10, 9000, 1000),
        # who is sick answers nothing, and counts for nothing
        ("■■■|■◇◇", 6, 5000, 2500),
        # old ones are lost: a canary gets no more than its weight, while one old one is healthy
        ("■|■■■", 6, 5000, 5000),
        ("|■■■", 6, 5000, 0),
        # the floor allows so many to be missing
        ("■■■|■■", 4, 5000, 5000),
        ("■■■|■", 0, 5000, 5000),
    ],
)
def test_a_canary_gets_no_more_than_its_healthy_replicas_carry(
    picture: str, floor: int, weight: int, given: int
) -> None:
    old, canary = picture.split("|")
    routes = [route(1 + number) for number, _ in enumerate(old)]
    routes += [
        new(20 + number, status=SICK if drawn == "◇" else RouteStatus.HEALTHY) for number, drawn in enumerate(canary)
    ]
    shared_out = sides(replace(deployment(*routes), canary=Canary(weight, floor=floor)))
    assert shared_out.weight == given


@pytest.mark.parametrize("floor", [0, 1])
def test_where_no_old_one_is_healthy_what_another_canary_left_answers_whatever_the_floor_is(floor: int) -> None:
    left = route(2, revision="v3", is_current=False)
    found = sides(replace(deployment(route(1, status=SICK), left), canary=Canary(0, floor=floor)))
    assert left in found.live
    found = sides(replace(deployment(route(1), left), canary=Canary(0, floor=floor)))
    assert left not in found.live


def test_a_baseline_gets_no_more_than_its_healthy_replicas_carry() -> None:
    def shared_out(*routes: RouteInTraffic) -> tuple[int, int]:
        canary = Canary(4000, baseline=frozenset({UUID(int=2), UUID(int=4)}), floor=5)
        found = sides(replace(deployment(*routes), canary=canary))
        return found.weight, found.baseline_weight

    whole_canary = (new(3), new(5))
    assert shared_out(route(1), route(2), route(4), *whole_canary) == (4000, 4000)
    assert shared_out(route(1), route(6), route(2), route(4, status=SICK), *whole_canary) == (4000, 2000)
    assert shared_out(route(1), route(6), route(2), route(4), new(3), new(5, status=SICK)) == (2000, 4000)
    sick = (route(2, status=SICK), route(4, status=SICK))
    assert shared_out(route(1), route(6), *sick, *whole_canary) == (4000, 0)
    assert shared_out(route(1, status=SICK), route(2), route(4), *whole_canary) == (4000, 0), "they are the old side"


def test_a_baseline_answers_with_the_rest_where_that_could_not_carry_what_is_left() -> None:
    """Of two, an old one is replaced just when a canary begins anew: the young one counts as its baseline."""
    canary = Canary(0, baseline=frozenset({UUID(int=2)}), floor=2)
    found = sides(replace(deployment(route(1), route(2), new(3)), canary=canary))
    assert (len(found.live), found.baseline, found.weight) == (2, [], 0)
    found = sides(replace(deployment(route(1), route(4), route(2), new(3)), canary=canary))
    assert (len(found.live), len(found.baseline)) == (2, 1), "two carry all: the baseline waits for the weight"
