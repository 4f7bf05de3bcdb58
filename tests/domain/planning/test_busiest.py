"""When few replicas answer much: who, which part, and how many times what each answers now."""

import random
from dataclasses import replace

import pytest

from domain.model.deployment import Deployment
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import plan
from domain.planning.run import SideLoad, busiest, loads
from domain.strategies.builtin import parse_policy
from tests.support.pictures.pictures import NOW, READY, V1, blue_green, deploying, resting
from tests.support.pictures.policies import BASELINE, canary


@pytest.mark.parametrize(
    ("deployment", "busiest"),
    [
        (deploying("■■■|", 3, 1, 1), "2 replicas answer all requests: 1.5 times what each answers now"),
        (deploying("■■■|", 3, 1, 0), None),
        (deploying("■■■|", policy=blue_green()), None),
        (
            resting("■■■|", 1, READY, current_revision_id=V1),
            "1 replica answers all requests: 3 times what each answers now",
        ),
        (resting("|", 3, READY, current_revision_id=V1), None),
        (
            deploying("■■■■■|", 5, policy=canary(steps=["40%"], max_unavailable=2)),
            "3 replicas answer all requests: 1.67 times what each answers now",
        ),
        (deploying("■■■■|", 4, policy=canary(steps=["25%"])), None),
    ],
)
def test_a_plan_names_the_busiest_moment(deployment: Deployment, busiest: str | None) -> None:
    promise = plan(Subject(deployment), NOW, Timings((2.0,), (1.0,)), random.Random(7).random).guarantee
    assert promise.partition("; at the busiest moment ")[2] == (busiest or "")


def sides(deployment: Deployment) -> list[tuple[int, int]]:
    """Of each side that gets requests: its replicas, and its share of 10,000 of them."""
    return [(side.replicas, side.share) for side in loads(deployment)]


@pytest.mark.parametrize(
    ("drawn", "weight", "expected"),
    [
        ("■■■|■", None, [(4, 10_000)]),
        ("■■■|■", 0, [(3, 10_000)]),
        ("■■■|■", 500, [(1, 500), (3, 9500)]),
        ("■■■|■", 5000, [(1, 3333), (3, 6667)]),  # one of three that must serve carries no more
        ("■■■|■■", 5000, [(2, 5000), (3, 5000)]),
        ("■▲■|■◇□", 500, [(1, 500), (2, 9500)]),
        ("■|■", 5000, [(1, 5000), (1, 5000)]),  # of three two are gone: what is left has equal parts
        ("■■■|", 500, [(3, 10_000)]),
        ("|■■■", 500, [(3, 10_000)]),
        ("▲▲|◇", 500, []),
    ],
)
def test_each_side_of_a_canary_has_the_load_of_its_weight(
    drawn: str, weight: int | None, expected: list[tuple[int, int]]
) -> None:
    weighed = deploying(drawn, policy=canary(steps=["5%", "50%"]), rollout={"stage": 1, "weight": weight})
    assert sides(weighed) == expected


@pytest.mark.parametrize(
    ("drawn", "fresh", "weight", "expected"),
    [
        ("■■■■|■■", 0, 5000, [(2, 5000), (4, 5000)]),
        ("■■■■|■■", 1, 5000, [(2, 5000), (1, 2500), (3, 2500)]),
        ("■■■■|■", 2, 5000, [(1, 2500), (1, 2500), (3, 5000)]),  # as many as the canary has
        ("■■■■|■", 1, 500, [(1, 500), (4, 9500)]),  # the other three could not carry what is left
    ],
)
def test_a_fresh_baseline_has_the_load_of_the_canary_beside_it(
    drawn: str, fresh: int, weight: int, expected: list[tuple[int, int]]
) -> None:
    weighed = deploying(drawn, 4, policy=parse_policy(BASELINE), rollout={"stage": 1, "weight": weight})
    routes = [replace(route, created_at=NOW) for route in weighed.routes[:fresh]]
    assert sides(replace(weighed, routes=(*routes, *weighed.routes[fresh:]))) == expected


@pytest.mark.parametrize(
    ("moment", "sentence"),
    [
        (SideLoad(0.25, 4, 10_000), None),
        (SideLoad(0.2507, 1, 2507), None),  # no more than rounding
        (SideLoad(0.2508, 1, 2508), "1 replica answers 25.08 % of the requests: 1 times what each answers now"),
        (SideLoad(0.45, 2, 9000), "2 replicas answer 90 % of the requests: 1.8 times what each answers now"),
        (SideLoad(1.0, 1, 10_000), "1 replica answers all requests: 4 times what each answers now"),
    ],
)
def test_the_busiest_moment_is_told_where_it_is_busier_than_now(moment: SideLoad, sentence: str | None) -> None:
    told = busiest(resting("■■■■", 4, READY), [SideLoad(0.1, 9, 9000), moment])
    assert told == (sentence and f"at the busiest moment {sentence}")


def test_where_nobody_serves_now_or_then_no_moment_is_the_busiest() -> None:
    assert busiest(resting("◇", 1, READY), [SideLoad(1.0, 1, 10_000)]) is None
    assert busiest(resting("■", 1, READY), []) is None
