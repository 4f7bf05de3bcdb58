"""How many replicas each side of a canary has: on the way to a weight, and while the rollout stands still."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.model.decision import RouteChanges
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.strategies.budget import Buckets, Budget
from domain.strategies.builtin import STRATEGIES
from domain.strategies.canary.sizing import Sizes, above_floor, sides, sizes_at, sizes_kept
from tests.support.pictures.pictures import NOW, V2, V3, deploying, drawn_changes, route_id
from tests.support.pictures.policies import canary
from tests.support.pictures.values_within import canary_of

CANARY = STRATEGIES["canary"]
PLAIN = canary(steps=["25%", "75%"])
THREE = canary(steps=["25%"], replicas=3, max_unavailable=1)
BESIDE = canary(steps=["25%", "50%"], max_surge=4, judge={"baseline": "fresh"})
NARROW = canary(steps=["25%", "50%"], max_surge=2, judge={"baseline": "fresh"})


def at(
    picture: str, n: int, stage: int, weight: int, policy: DeploymentPolicy = PLAIN, young: int | None = None
) -> tuple[Deployment, Budget]:
    """Paused at this stage. `young`: replicas from this one on are no older than the rollout."""
    its: dict[str, Any] = {"stage": stage, "weight": weight}
    if young is not None:
        its["started_at"] = NOW - timedelta(days=1) + timedelta(seconds=young)
    deployment = deploying(picture, n, policy=policy, rollout=its, paused_at=NOW)
    return deployment, CANARY.budget_of(deployment, policy.spec)


def spec_of(policy: DeploymentPolicy) -> Any:
    return policy.spec


@pytest.mark.parametrize(
    ("policy", "n", "stage", "weight", "sizes"),
    [
        (PLAIN, 4, 0, 0, Sizes(1, 0, 4, 0)),
        (PLAIN, 4, 1, 0, Sizes(1, 0, 4, 2500)),
        (PLAIN, 4, 1, 2500, Sizes(1, 0, 4, 2500)),
        # from 25 % to 75 % there is no room for three at once
        (PLAIN, 4, 2, 2500, Sizes(2, 0, 3, 5000)),
        (PLAIN, 4, 2, 5000, Sizes(3, 0, 2, 7500)),
        (PLAIN, 4, 3, 7500, Sizes(3, 0, 2, 7500)),
        (PLAIN, 0, 1, 2500, Sizes(0, 0, 0, 2500)),
        (THREE, 4, 1, 0, Sizes(2, 0, 3, 2500)),
        # a fresh baseline has as many as the canary, and as many requests
        (BESIDE, 4, 1, 0, Sizes(1, 1, 4, 2500)),
        (BESIDE, 4, 2, 2500, Sizes(2, 2, 4, 5000)),
        (NARROW, 4, 2, 5000, Sizes(2, 2, 2, 5000)),
    ],
)
def test_the_sizes_come_as_near_to_those_of_a_stage_as_the_present_weight_lets_them(
    policy: DeploymentPolicy, n: int, stage: int, weight: int, sizes: Sizes
) -> None:
    deployment, budget = at("|", n, stage, weight, policy)
    assert sizes_at(spec_of(policy), canary_of(deployment.rollout), stage, budget) == sizes


@pytest.mark.parametrize(
    ("policy", "picture", "n", "stage", "weight", "young", "kept"),
    [
        (PLAIN, "■■■■|■", 4, 1, 2500, None, (1, 0, 4)),
        (PLAIN, "■■■|■■", 4, 1, 2500, None, (2, 0, 4)),  # those of the next stage stay
        (PLAIN, "■■■■|▣", 4, 1, 2500, None, (1, 0, 4)),  # who is replaced makes no side larger
        (PLAIN, "■■■■|■■", 4, 1, 2500, None, (1, 0, 4)),  # but above the ceiling they go
        (PLAIN, "■■■|■■", 4, 2, 5000, None, (2, 0, 3)),  # on its way, with what it needs by now
        (PLAIN, "■■■|▲▲", 4, 2, 5000, None, (2, 0, 3)),
        (PLAIN, "■■|▲▲", 4, 2, 7500, None, (3, 0, 2)),
        (PLAIN, "■■■■|", 4, 2, 0, None, (0, 0, 4)),
        # before it begins it takes no place but its own
        (PLAIN, "■■■■|", 4, 0, 0, None, (0, 0, 4)),
        (PLAIN, "■■|■", 4, 0, 0, None, (1, 0, 4)),
        (THREE, "■■|", 4, 0, 0, None, (0, 0, 4)),
        (THREE, "■■|■■", 4, 0, 0, None, (2, 0, 3)),
        # nobody is wanted
        (PLAIN, "|■", 0, 1, 2500, None, (0, 0, 0)),
        (PLAIN, "■■|■■", 0, 1, 2500, None, (0, 0, 0)),
        # a baseline as far as it is there, and from the first weight on whole
        (BESIDE, "■■■■|■", 4, 0, 0, None, (1, 0, 4)),
        (BESIDE, "■■■■■|■", 4, 0, 0, 4, (1, 1, 4)),
        (BESIDE, "■■■■▣|■", 4, 0, 0, 4, (1, 0, 4)),
        (BESIDE, "■■■■|■", 4, 1, 2500, None, (1, 1, 4)),
        (NARROW, "■■■■|■■", 4, 2, 5000, 2, (2, 2, 2)),
        (NARROW, "■■■■|■■", 4, 2, 5000, 3, (2, 2, 3)),
    ],
)
def test_while_it_stands_still_the_sizes_are_those_of_its_stage_and_nobody_of_the_next_leaves(
    policy: DeploymentPolicy, picture: str, n: int, stage: int, weight: int, young: int | None, kept: tuple[int, ...]
) -> None:
    deployment, budget = at(picture, n, stage, weight, policy, young)
    buckets = Buckets.of(deployment.routes, V2, NOW)
    found = sizes_kept(deployment, spec_of(policy), canary_of(deployment.rollout), buckets, budget, NOW)
    assert (found.canary, found.fresh, found.elder) == kept
    assert found.weight == sizes_at(spec_of(policy), canary_of(deployment.rollout), stage, budget).weight


def test_a_canary_takes_a_rollout_and_an_old_revision() -> None:
    deployment, budget = at("■|■", 2, 1, 2500)
    buckets = Buckets.of(deployment.routes, V2, NOW)
    for broken in (replace(deployment, current_revision_id=None), replace(deployment, rollout=None)):
        with pytest.raises(ValueError, match="web is deploying without a current revision"):
            sides(broken, buckets, budget, Sizes(1, 0, 2, 2500), NOW)


COUNTING = canary(steps=["25%"], count_stopping=True)


@pytest.mark.parametrize(
    ("policy", "picture", "left", "status_for", "new", "old"),
    [
        (PLAIN, "■■■|■~", 0, 60, "", "create 1"),
        (COUNTING, "■■■|■~", 0, 60, "", ""),  # what stops of the canary has its place
        (PLAIN, "■■■■~|", 0, 60, "create 1", ""),
        (COUNTING, "■■■■~|", 0, 60, "", ""),  # and what stops of the old side
        (PLAIN, "■■■▲◇|■", 0, 3, "", ""),  # one that starts takes the place of a sick one
        # replicas of an earlier canary go first, unless an old one starts
        (PLAIN, "■■■■■|", 1, 60, "", "drain ■"),
        (PLAIN, "■■■■◇|", 1, 60, "", ""),
        # where no old one serves, those that start come first; none starts while all may recover
        (PLAIN, "◇|", 0, 60, "", "create 3"),
        (PLAIN, "|", 0, 60, "", "create 4"),
        (PLAIN, "◇◇◇◇|", 0, 60, "", ""),
        (PLAIN, "◇◇◇▲|", 0, 3, "", ""),
        (PLAIN, "▲▲▲▲|", 0, 3, "create 1", ""),
        (PLAIN, "■■▲|", 0, 3, "create 1", "create 1"),
    ],
)
def test_the_next_step_of_each_side(
    policy: DeploymentPolicy, picture: str, left: int, status_for: float, new: str, old: str
) -> None:
    """At the first weight of four. `left`: how many of the first ones another canary left."""
    its = {"stage": 1, "weight": 2500, "weight_known_at": NOW - timedelta(seconds=9)}
    deployment = deploying(picture, 4, policy=policy, rollout=its, status_for=status_for)
    routes = (
        replace(route, revision_id=V3) if number < left else route for number, route in enumerate(deployment.routes)
    )
    deployment = replace(deployment, routes=tuple(routes))
    buckets, budget = Buckets.of(deployment.routes, V2, NOW), CANARY.budget_of(deployment, policy.spec)
    sizes = sizes_at(spec_of(policy), canary_of(deployment.rollout), 1, budget)
    found = sides(deployment, buckets, budget, sizes, NOW)
    assert tuple(drawn_changes(deployment, side.changes) for side in found) == (new, old)


@pytest.mark.parametrize(("comes", "stays"), [("□", ""), ("◌", "■")])
def test_one_that_comes_into_traffic_healthy_lets_another_leave(comes: str, stays: str) -> None:
    deployment, budget = at(f"■■■■{comes}|", 4, 0, 0)
    changes = RouteChanges.promote((route_id(4),)) + RouteChanges.drain((route_id(0),))
    found = above_floor(deployment, canary_of(deployment.rollout), changes, budget)
    assert found == (RouteChanges.promote((route_id(4),)) if stays else changes)
