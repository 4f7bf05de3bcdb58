"""The way back from a weight: the new side loses requests as fast as the old one can answer them, or all for harm.

    1  the old side carries more than it gets  -> the canary gets the rest, as soon as proxies know
    2  otherwise converge, but who is needed for a weight stays: what the canary's no longer asks for is drained,
       old ones come up in its place

n=4 surge=1, aborted at 75 %:   ■■|■■■ 50 %  →  ■■|■■  →  ■■■|■■ 25 %  →  ■■■|■  →  ■■■■|■ 0 %  →  ■■■■|
"""

import math
from dataclasses import replace
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from domain.model.canary import CanaryState
from domain.model.decision import Decision, RouteChanges, Stage, Waits, WaitsFor
from domain.model.deployment import Deployment
from domain.strategies.base import AbstractDeploymentStrategy
from domain.strategies.budget import Buckets, Budget
from domain.strategies.canary.judge_step import for_proxies, soonest
from domain.strategies.canary.sizing import above_floor, step_in_words
from domain.strategies.converge import held_until, sized_as_kept
from domain.strategies.messages import for_replicas
from domain.strategies.weighted import SpecT
from domain.text.numbers import WHOLE, number_of, percent


def weight_back(deployment: Deployment, weight: int, budget: Budget) -> int:
    """The weight that the canary keeps: only the share that the old side cannot answer."""
    old, new = _serving(deployment)
    carry = min(budget.keep, old + new)
    return 0 if old >= carry else min(weight, WHOLE - WHOLE * old // carry)


class WeighingStrategy(AbstractDeploymentStrategy[SpecT]):
    """A strategy whose new revision gets a share of the requests by weight, with the way back from there."""

    weighs: ClassVar[bool] = True

    def keep_whole(self, deployment: Deployment, spec: SpecT, now: datetime) -> Decision:
        """Replace dead replicas; those that a weight needs stay, and lose their requests first."""
        deployment = sized_as_kept(deployment)
        repairs = super().keep_whole(deployment, spec, now)
        canary = deployment.rollout.canary if deployment.rollout else None
        if canary is None or canary.weight is None:
            return repairs
        budget = self.budget_of(deployment, spec)
        changes = above_floor(deployment, canary, repairs.changes, budget)
        if changes or not repairs.changes:
            return _limited_to(changes, repairs, deployment, budget)
        requests = f"the canary's {percent(canary.weight)}" if canary.weight else "all requests"
        sentence = f"who is left is needed for {requests}"
        return Decision.wait(Waits(WaitsFor.NOTHING, sentence))

    def go_back(self, deployment: Deployment, spec: SpecT, target: UUID, now: datetime) -> Decision:
        """Take one step of the ladder above; where no weight is left it converges."""
        converging = super().go_back(deployment, spec, target, now)
        canary = deployment.rollout.canary if deployment.rollout else None
        if canary is None or not canary.weight:
            return converging
        return _from_weight(deployment, canary, target, converging, self.budget_of(deployment, spec), now)

    def begins_with(self, deployment: Deployment, spec: SpecT) -> CanaryState | None:
        """Begin with the weight that the old side cannot answer: an earlier try may have left new replicas."""
        weight = weight_back(deployment, WHOLE - 1, self.budget_of(deployment, spec)) if self.weighs else None
        return None if weight is None else CanaryState(weight=weight)

    def answering(self, deployment: Deployment, spec: SpecT, start_seconds: float | None) -> str | None:
        """The replicas that answer until the old side is whole, the time until then, and the way to end it at once."""
        budget, (old, _) = self.budget_of(deployment, spec), _serving(deployment)
        if not weight_back(deployment, WHOLE, budget):
            return None
        canary = deployment.rollout.canary if deployment.rollout else None
        few = f"{number_of(old, 'old replica')} {'answers' if old == 1 else 'answer'} what {budget.desired} should"
        more = _more(budget.keep - old, max(1, budget.ceiling - budget.desired), start_seconds)
        if canary is None or not canary.weight:
            return f"{few} until {more}"
        keeps = f"the canary keeps {percent(canary.weight)} of the requests until {more}"
        return f"{keeps}; 'rollway abort {deployment.name} --now' takes them away at once, then {few}"

    def turned_back(self, deployment: Deployment, spec: SpecT, *, at_once: bool) -> CanaryState | None:
        """Keep only the weight that the old side cannot answer yet; after harm none."""
        canary = super().turned_back(deployment, spec, at_once=at_once)
        if canary is None or not canary.weight:
            return canary
        budget = self.budget_of(deployment, spec)
        return canary.with_weight(0 if at_once else weight_back(deployment, canary.weight, budget))


def _from_weight(  # noqa: PLR0913
    deployment: Deployment, canary: CanaryState, target: UUID, converging: Decision, budget: Budget, now: datetime
) -> Decision:
    current_weight = canary.weight or 0
    weight = weight_back(deployment, current_weight, budget)
    if weight < current_weight:
        sentence = f"the canary gets {percent(weight)} of the requests, falling to none"
        return Decision.moved(sentence, RouteChanges(stage=Stage(canary.stage, weight)), now)
    changes = above_floor(deployment, canary, converging.changes, budget)
    if changes or not converging.changes:
        return _limited_to(changes, converging, deployment, budget)
    old = Buckets.of(deployment.routes, target, now)
    recheck_at = soonest((held_until(deployment), old.next_change_at(now)), now)
    sentence = f"the canary answers {percent(current_weight)} of the requests until old ones can"
    is_known = canary.weight_known_at is not None
    waits = for_replicas(sentence, old, budget, now) if is_known else for_proxies(current_weight)
    return Decision.wait(waits, recheck_at)


def _limited_to(changes: RouteChanges, step: Decision, deployment: Deployment, budget: Budget) -> Decision:
    """The step with those of its changes that can be made now, and a sentence that counts them."""
    if changes == step.changes:
        return step
    return replace(step, changes=changes, reason=step_in_words(deployment, changes, budget))


def at_once(deployment: Deployment, weight: int, harm: str, budget: Budget) -> str:
    """Harm leads back without a stop, and says so where the old side is too small for all requests."""
    if not weight_back(deployment, weight, budget):
        return harm
    old, _ = _serving(deployment)
    answer = "answers" if old == 1 else "answer"
    return f"{harm}; so {number_of(old, 'old replica')} at once {answer} what {budget.desired} should"


def _more(shortfall: int, at_a_time: int, start_seconds: float | None) -> str:
    """8 more are up, 3 at a time, while starts took 20 s: three times 20 s."""
    sentence = f"{shortfall} more are up, {at_a_time} at a time"
    if start_seconds is None:
        return sentence
    return (
        f"{sentence}, about {max(1.0, math.ceil(shortfall / at_a_time) * start_seconds):.0f} s as starts went of late"
    )


def _serving(deployment: Deployment) -> tuple[int, int]:
    """Count the serving ones of the old side and of the canary."""
    target = deployment.deploying_revision_id
    sides = [route.revision_id == target for route in deployment.routes if route.is_serving]
    return sides.count(False), sides.count(True)
