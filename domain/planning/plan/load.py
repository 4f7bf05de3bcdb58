"""The busiest moment of a run: which part of the requests how few replicas answer, beside what each answers now."""

from collections.abc import Iterable
from typing import NamedTuple

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.rollout import guard_of
from domain.model.deployment import Deployment, Rollout
from domain.text.numbers import WHOLE, number_of, percent
from domain.traffic.capacity import shared_out

_ROUNDING = 1.003
"""Weights are whole hundredths of a percent."""


class SideLoad(NamedTuple):
    """The load of each replica of a side: `times` what each would have, had all that serve an equal part of all.

    `share`: of 10,000 requests.
    """

    times: float
    replicas: int
    share: int


def loads(deployment: Deployment) -> list[SideLoad]:
    """One for each side that gets requests and has a replica that serves."""
    rollout, serving = deployment.rollout, [route for route in deployment.routes if route.is_serving]
    weight = rollout.canary.weight if rollout and rollout.canary else None
    new = sum(route.revision_id == deployment.deploying_revision_id for route in serving)
    sides = [(len(serving), WHOLE)]
    if rollout is not None and weight is not None and new < len(serving):
        old, fresh = len(serving) - new, min(new, _fresh(deployment, rollout))
        enough = min(guard_of(deployment).keep, len(serving))
        share, beside = shared_out(weight, enough, new, fresh, old - fresh)
        sides = [(new, share), (old, WHOLE - share)]
        if beside is not None:
            sides = [(new, share), (fresh, beside), (old - fresh, WHOLE - share - beside)]
    return [SideLoad(share / WHOLE / count, count, share) for count, share in sides if count and share]


def _fresh(deployment: Deployment, rollout: Rollout) -> int:
    """Count the serving ones of those with which the new ones are compared."""
    policy = rollout.policy
    return sum(route.is_serving for route in EVALUATOR.strategy_of(policy).control(deployment, rollout, policy.spec))


def busiest(before: Deployment, moments: Iterable[SideLoad]) -> str | None:
    """E.g. "2 replicas answer 90 % of the requests: 4.5 times what each answers now"; None where none gets more."""
    now, most = max(loads(before), default=None), max(moments, default=None)
    if now is None or most is None or most.times <= now.times * _ROUNDING:
        return None
    part = "all" if most.share == WHOLE else f"{percent(most.share)} of the"
    who = f"{number_of(most.replicas, 'replica')} answer{'s' * (most.replicas == 1)}"
    return f"at the busiest moment {who} {part} requests: {most.times / now.times:.3g} times what each answers now"
