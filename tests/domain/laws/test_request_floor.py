"""A floor of requests: no act of ours gives a side more than its replicas carry, by a formula of its own.

Load is what a replica answers, as a multiple of its part of n equal ones: share x n / replicas that serve. With u of n
allowed to be missing it may be n / (n - u), and as much as it was before where replicas have fallen ill. Weights are
hundredths of a percent, which is the rest.
"""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from domain.cycle.rollout import weight_known
from domain.model.deployment import Deployment
from domain.planning.simulator import Fate, Fates, World
from domain.steering.verbs import abort
from domain.strategies.canary.steps import CanarySpec
from tests.support.people.people import activate_revision, asking
from tests.support.pictures.pictures import NOW, READY, V1, V2, V3, resting
from tests.support.pictures.policies import canary

ROUNDING = Fraction(1003, 1000)
MINUTE = 60


def loads(deployment: Deployment) -> dict[str, Fraction]:
    """Of each side that gets requests: who they are is written down here once more, from docs/canary.md."""
    n, rollout = deployment.desired_replicas, deployment.rollout
    serving = [route for route in deployment.routes if route.is_serving]
    weight = rollout.canary.weight if rollout and rollout.canary else None
    current = [r for r in serving if r.revision_id == deployment.current_revision_id]
    new = [r for r in serving if r.revision_id == deployment.deploying_revision_id]
    shares = {"all": (Fraction(1), len(serving))}
    if weight is not None and rollout is not None and current:
        spec, old = rollout.policy.spec, len(current)
        share = Fraction(weight, 10_000)
        if old < n - _missing(rollout.policy.spec, n):
            old = len(serving) - len(new)  # what another canary left answers until it is replaced
        fresh = min(len(new), sum(r.created_at >= rollout.started_at for r in current))
        beside = fresh if isinstance(spec, CanarySpec) and spec.has_baseline and fresh < old else 0
        shares = {"canary": (share, len(new))}
        if beside:
            shares |= {"baseline": (share, beside)}
        shares["old"] = (1 - share * (2 if beside else 1), old - beside)
    return {side: share * n / max(Fraction(1, 1000), Fraction(who)) for side, (share, who) in shares.items() if share}


def _missing(spec: Any, n: int) -> int:
    return min(n, int(spec.max_unavailable))


@dataclass
class Watched(World):
    """A world in which each act of ours is held to the law."""

    loads_seen: list[Fraction] = field(default_factory=list)

    def _look(self) -> None:
        before = worst(self.deployment)
        super()._look()
        n, rollout = self.deployment.desired_replicas, self.looks[-1].decision.deployment.rollout
        if rollout is None:
            return
        keep = n - _missing(rollout.policy.spec, n)
        now = worst(self.deployment)
        self.loads_seen.append(now)
        said = f"{self.looks[-1].decision.reason}: {loads(self.deployment)}"
        assert not keep or now <= max(before, Fraction(n, keep) * ROUNDING), said
        left = self.deployment.rollout
        if left is not None and self.looks[-1].decision.clock_stopped and not left.promote_requested:
            self.deployment = replace(self.deployment, rollout=replace(left, promote_requested=True))
            self.due_at = self.at


def worst(deployment: Deployment) -> Fraction:
    return max(loads(deployment).values(), default=Fraction(0))


def begun(n: int, steps: list[str], *, after: Deployment | None = None, **spec: Any) -> Watched:
    """A canary of a revision that starts for ten seconds, promoted by a person as soon as one is asked."""
    ready = after or resting(f"{'■' * n}|", n, READY, current_revision_id=V1)
    wanted = activate_revision(
        ready, V3 if after else V2, canary(steps=steps, **spec), NOW, supersede=after is not None
    )
    return Watched(wanted.deployment, NOW, Fates(Fate(start_seconds=10, stop_seconds=3)))


def until_weight(world: World, weight: int) -> None:
    """Until the canary has this weight, and every proxy knows it."""
    ends = world.at + timedelta(hours=5)
    while (rollout := world.deployment.rollout) and rollout.canary and rollout.canary.weight != weight:
        assert world.step(ends), "the canary never gets its weight"


CASES = list(product(range(1, 13), (1, 2, 3), (0, 1, 2)))


@pytest.mark.parametrize(("n", "surge", "missing"), CASES)
def test_every_weight_there_and_back(n: int, surge: int, missing: int) -> None:
    for weight in range(1 + (n + surge + missing) % 6, 100, 6):
        world = begun(n, [f"{weight}%"], max_surge=surge, max_unavailable=missing)
        until_weight(world, weight * 100)
        held = world.deployment
        world.run(7200)
        assert world.deployment.status == READY, weight
        assert len(world.deployment.active_routes) == n
        back = Watched(abort(held, asking(held, world.at)).deployment, world.at, world.fates, fate_of=world.fate_of)
        back.deployment = weight_known(back.deployment, world.at)
        assert worst(back.deployment) <= max(worst(held), Fraction(n, max(1, n - missing)) * ROUNDING), weight
        back.run(7200)
        assert (back.deployment.status, back.deployment.current_revision_id) == (READY, V1), weight


@pytest.mark.parametrize(
    ("n", "steps", "spec"),
    [
        (10, ["5%", "50%"], {}),
        (10, ["10%", "90%"], {}),
        (3, ["5%", "50%"], {}),
        (3, ["5%"], {"replicas": 3}),
        (10, ["5%", "50%"], {"max_surge": 3}),
        (10, ["5%", "50%"], {"max_surge": 2, "judge": {"baseline": "fresh"}}),
        (7, ["5%", "33%"], {"max_surge": 3, "replicas": 1, "judge": {"baseline": "fresh", "dry_run": True}}),
        (7, ["14.3%", "57.1%", "99.9%"], {"replicas": 1}),
        (12, ["8.33%", "91.67%"], {"count_stopping": True}),
    ],
)
def test_what_a_review_found(n: int, steps: list[str], spec: dict[str, Any]) -> None:
    world = begun(n, steps, **spec)
    world.run(7200)
    assert world.deployment.status == READY
    assert max(world.loads_seen) <= ROUNDING


@pytest.mark.parametrize("n", range(1, 13))
@pytest.mark.parametrize("weight", [5, 50, 90])
def test_a_canary_that_takes_the_place_of_a_canary(n: int, weight: int) -> None:
    world = begun(n, [f"{weight}%"])
    until_weight(world, weight * 100)
    following = begun(n, ["5%"], after=world.deployment)
    assert worst(following.deployment) <= ROUNDING
    until_weight(following, 500)
    assert {route.revision_id for route in following.deployment.active_routes} == {V1, V3}
    following.run(7200)
    assert (following.deployment.status, following.deployment.current_revision_id) == (READY, V3)
