"""The way back of a canary: it loses requests as fast as the old side can answer them, or all at once for harm.

    1  the old side carries more than it gets  -> the canary gets the rest, as soon as proxies know
    2  otherwise converge, but who is needed for a weight stays: what the canary's no longer asks for is drained,
       old ones come up in its place

n=4 surge=1, aborted at 75 %:   ■■|■■■ 50 %  →  ■■|■■  →  ■■■|■■ 25 %  →  ■■■|■  →  ■■■■|■ 0 %  →  ■■■■|
"""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from domain.model.changes import Decision, RouteChanges, Stage
from domain.model.deployment import Deployment
from domain.model.waits import Waits, WaitsFor
from domain.strategies.backoff import held_until
from domain.strategies.buckets import Buckets
from domain.strategies.budget import Budget
from domain.strategies.canary.sides import above_floor
from domain.strategies.canary.steps import percent
from domain.strategies.canary.waiting import soonest
from domain.strategies.converge import converge
from domain.words.numbers import WHOLE, number_of


def weight_back(deployment: Deployment, given: int, budget: Budget) -> int:
    """What the canary still gets of its weight: as little as the old side can do without."""
    old, new = _serving(deployment)
    carry = min(budget.keep, old + new)
    return 0 if old >= carry else min(given, WHOLE - WHOLE * old // carry)


def going_back(deployment: Deployment, target: UUID, budget: Budget, now: datetime) -> Decision:
    """One cycle of the ladder above; where no canary has a weight it converges."""
    converging = converge(deployment, target, budget, now)
    canary = deployment.rollout.canary if deployment.rollout else None
    if canary is None or not canary.weight:
        return converging
    given = canary.weight
    weight = weight_back(deployment, given, budget)
    if weight < given:
        said = f"the canary gets {percent(weight)} of the requests, on the way back to none"
        return Decision.moved(said, RouteChanges(stage=Stage(canary.stage, weight)), now)
    changes = above_floor(deployment, canary, converging.changes, budget)
    if changes or not converging.changes:
        return replace(converging, changes=changes)
    old = Buckets.of(deployment.routes, target, now)
    recheck_at = soonest((converging.recheck_at, held_until(deployment), old.next_change_at(now)), now)
    if canary.weight_known_at is None:
        what = f"every live proxy to acknowledge {percent(given)} for the canary"
        return Decision.wait(f"waiting: {what}", recheck_at, Waits(WaitsFor.PROXIES, f"waits for {what}"))
    return Decision.wait(f"waiting: the canary answers {percent(given)} of the requests until old ones can", recheck_at)


def at_once(deployment: Deployment, given: int, harm: str, budget: Budget) -> str:
    """Harm leads back without a stop, and says so where the old side is too small for all requests."""
    if not weight_back(deployment, given, budget):
        return harm
    old, _ = _serving(deployment)
    return f"{harm}; so {number_of(old, 'old replica')} at once answer what {budget.desired} should"


def _serving(deployment: Deployment) -> tuple[int, int]:
    """How many serve of the old side and of the canary."""
    target = deployment.deploying_revision_id
    sides = [route.revision_id == target for route in deployment.routes if route.is_serving]
    return sides.count(False), sides.count(True)
