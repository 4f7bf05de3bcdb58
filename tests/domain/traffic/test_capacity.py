"""How many replicas a share of the requests needs, what replicas carry, and which of them get none."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from domain.model.states import RouteStatus, TrafficStatus
from domain.traffic.capacity import carried, is_preview, needed, shared_out, sides, weight_sent, with_a_share
from domain.traffic.snapshot import Canary, DeploymentInTraffic, RequestRules, RouteInTraffic

OLD, NEW = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize(
    ("keep", "weight", "replicas"),
    [
        (10, 0, 0),
        (10, 1, 1),  # 0.01 %
        (10, 500, 1),
        (10, 1000, 1),
        (10, 1002, 1),  # one this much lower needs no further replica
        (10, 1003, 2),
        (10, 9500, 10),
        (10, 10_000, 10),
        (10_000, 10_000, 10_000),
        (3, 3334, 1),
        (3, 6667, 2),
        (3, 6669, 3),
        (1, 10_000, 1),
        (0, 10_000, 0),
    ],
)
def test_a_share_needs_its_part_of_the_replicas_and_one_at_least(keep: int, weight: int, replicas: int) -> None:
    assert needed(keep, weight) == replicas


@pytest.mark.parametrize(
    ("keep", "replicas", "carries"),
    [(3, 0, 0), (3, 1, 3333), (3, 2, 6666), (3, 3, 10_000), (3, 4, 10_000), (0, 0, 10_000), (0, 1, 10_000)],
)
def test_replicas_carry_their_part_of_the_requests(keep: int, replicas: int, carries: int) -> None:
    assert carried(keep, replicas) == carries


@pytest.mark.parametrize(
    ("weight", "replicas", "keep", "sent"),
    [
        (5000, 0, 6, 0),
        (5000, 1, 6, 1666),
        (5000, 2, 6, 3333),
        (5000, 3, 6, 5000),
        (5000, 4, 6, 5000),
        (5000, 1, 0, 5000),
        (1, 1, 6, 1),
    ],
)
def test_a_side_is_sent_no_more_than_it_carries(weight: int, replicas: int, keep: int, sent: int) -> None:
    assert weight_sent(weight, replicas, keep) == sent


@pytest.mark.parametrize(
    ("canary", "baseline", "rest", "shares"),
    [
        (1, 1, 3, (2500, 2500)),
        (1, 1, 2, (2500, 2500)),
        (1, 1, 1, (2500, None)),  # half of the requests need two
        (1, 0, 3, (2500, None)),
        (1, 1, 0, (2500, None)),
        (0, 1, 4, (0, 2500)),
        (0, 1, 2, (0, None)),
    ],
)
def test_a_baseline_has_its_share_apart_where_the_rest_carries_what_is_left(
    canary: int, baseline: int, rest: int, shares: tuple[int, int | None]
) -> None:
    """25 % for each of them, of what four carry."""
    assert shared_out(2500, 4, canary, baseline, rest) == shares


def test_without_replicas_that_must_serve_a_rest_of_none_carries_nothing() -> None:
    assert shared_out(2500, 0, 1, 1, 0) == (2500, None)
    assert shared_out(2500, 0, 1, 1, 1) == (2500, 2500)


SYMBOLS = {"■": RouteStatus.HEALTHY, "▲": RouteStatus.UNHEALTHY, "◇": RouteStatus.PROVISIONING}


def drawn(picture: str, canary: Canary | None) -> DeploymentInTraffic:
    """Replicas that another canary left, current ones, and candidates."""
    left, current, candidates = picture.split("|")
    symbols = [(symbol, "left") for symbol in left] + [(symbol, "current") for symbol in current]
    symbols += [(symbol, "candidate") for symbol in candidates]
    routes = [
        RouteInTraffic(
            UUID(int=number),
            side,
            NEW if side == "candidate" else OLD,
            "10.0.0.1:80",
            SYMBOLS.get(symbol, RouteStatus.HEALTHY),
            TrafficStatus.INACTIVE if symbol == "□" else TrafficStatus.ACTIVE,
            1.0,
            is_candidate=side == "candidate",
            is_parked=False,
            is_current=side == "current",
        )
        for number, (symbol, side) in enumerate(symbols)
    ]
    return DeploymentInTraffic("web", (), RequestRules(), tuple(routes), canary)


def numbers(routes: Sequence[RouteInTraffic]) -> str:
    return "".join(str(route.id.int) for route in routes)


def shares(picture: str, canary: Canary | None) -> str:
    """Who gets all or the rest, the canary, and the baseline; and the weights of the latter two."""
    found = sides(drawn(picture, canary))
    who = "|".join(map(numbers, (found.live, found.canary, found.baseline)))
    return f"{who} {found.weight} {found.baseline_weight}"


@pytest.mark.parametrize(
    ("picture", "floor", "expected"),
    [
        ("|■■■|■", 3, "012|3| 2500 0"),
        ("|■■■|□", 3, "012|| 0 0"),  # nobody of it is in traffic
        ("|■■■|", 3, "012|| 0 0"),
        ("|■■■|▲", 3, "012|| 0 0"),
        ("|▲▲▲|■", 3, "0123|| 0 0"),
        ("|▲▲▲|▲", 3, "0123|| 0 0"),
        ("||■■", 3, "01|| 0 0"),
        ("■|■■■|■", 3, "123|4| 2500 0"),  # what another canary left gets none
        ("■|■■▲|■", 3, "0123|4| 2500 0"),  # unless fewer are healthy than the floor
        ("■|▲|■", 0, "01|2| 2500 0"),  # or none, without a floor too
        ("■||■", 0, "0|1| 2500 0"),
        ("□|■■■|■", 3, "123|4| 2500 0"),
        ("|■■■■■|■", 6, "01234|5| 1666 0"),
        ("|■▲▲▲▲|■", 6, "01234|5| 2500 0"),  # two are healthy: half for each at most
    ],
)
def test_requests_are_shared_between_the_sides(picture: str, floor: int, expected: str) -> None:
    assert shares(picture, Canary(weight=2500, floor=floor)) == expected


def test_without_a_weight_all_replicas_in_traffic_share_the_requests() -> None:
    for canary in (None, Canary(floor=2)):
        assert shares("■|■▲□|■", canary) == "0124|| 0 0"
    assert shares("|■■|■", Canary(weight=0, floor=2)) == "01|2| 0 0"


@pytest.mark.parametrize(
    ("picture", "young", "expected"),
    [
        ("|■■■■|■", "3", "012|4|3 1000 1000"),
        ("|■■■■|■■", "3", "012|45|3 1000 1000"),
        ("|■■■■|■", "23", "013|4|2 1000 1000"),  # of them as many as the canary has
        ("|■■■▲■|■", "34", "0123|5|4 1000 1000"),  # the healthy ones first
        ("|■■■■|■", "", "0123|4| 1000 0"),
        ("|■■■▲|■", "3", "0123|4| 1000 0"),  # it answers nothing apart
        ("|■▲▲■|■", "3", "0123|4| 1000 0"),  # the rest could not carry what is left
    ],
)
def test_a_fresh_baseline_gets_as_many_requests_as_the_canary(picture: str, young: str, expected: str) -> None:
    baseline = frozenset(UUID(int=int(number)) for number in young)
    assert shares(picture, Canary(weight=1000, floor=3, baseline=baseline)) == expected


PREVIEW = replace(drawn("||□", None).routes[0], is_current=False)


def test_a_preview_is_a_healthy_candidate_that_waits_for_its_traffic() -> None:
    assert is_preview(PREVIEW)
    for changed in (
        {"traffic": TrafficStatus.ACTIVE},
        {"is_candidate": False},
        {"is_parked": True},
        {"status": RouteStatus.PROVISIONING},
    ):
        assert not is_preview(replace(PREVIEW, **changed))


def test_routes_without_a_ratio_get_no_requests_unless_none_has_one() -> None:
    first, second = (replace(route, ratio=0.0) for route in drawn("|■■|", None).routes)
    half = replace(first, ratio=0.5)
    assert with_a_share([half, second]) == [half]
    assert with_a_share([first, second]) == [first, second]
