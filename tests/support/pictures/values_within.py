"""Rollouts and deployments with a field changed, of theirs or of the value that they hold."""

from dataclasses import fields, replace
from typing import Any

from domain.autoscaling.rule import AutoscalingState
from domain.cycle.rollout import judging_of
from domain.model.canary import NOTHING_SEEN, CanaryState
from domain.model.deployment import Deployment, Rollout

CANARY_FIELDS = [field.name for field in fields(CanaryState)]
AUTOSCALING_FIELDS = [field.name for field in fields(AutoscalingState)]


def canary_of(rollout: Rollout | None) -> CanaryState:
    """Its canary; one past its weights where it has none."""
    return (rollout and rollout.canary) or CanaryState(weight=None)


def with_canary(rollout: Rollout, **changed: Any) -> Rollout:
    """With fields of the rollout, or of its canary, changed; `evidence` may be what proxies tell, in order."""
    its = {name: changed.pop(name) for name in CANARY_FIELDS if name in changed}
    told = its.pop("evidence") if isinstance(its.get("evidence"), tuple) else None
    canary = replace(canary_of(rollout), **its)
    if told is not None:
        canary = replace(canary, evidence=NOTHING_SEEN)
    judging = judging_of(rollout.policy)
    for seen in told or ():
        assert judging is not None
        canary = replace(canary, evidence=judging.fold_interval(canary, seen))
    return replace(rollout, canary=canary if its or told is not None else rollout.canary, **changed)


def with_autoscaling(deployment: Deployment, **changed: Any) -> Deployment:
    """With fields of the deployment, or of its autoscaling, changed."""
    its = {name: changed.pop(name) for name in AUTOSCALING_FIELDS if name in changed}
    return replace(deployment, autoscaling=replace(deployment.autoscaling, **its), **changed)
