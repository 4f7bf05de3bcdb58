"""Rollouts and deployments with a field changed, of theirs or of the value that they hold."""

from dataclasses import fields, replace
from typing import Any

from domain.model.autoscaling import AutoscalingState
from domain.model.canary import CanaryState
from domain.model.deployment import Deployment, Rollout

CANARY_FIELDS = [field.name for field in fields(CanaryState)]
AUTOSCALING_FIELDS = [field.name for field in fields(AutoscalingState)]


def canary_of(rollout: Rollout | None) -> CanaryState:
    """Its canary; one past its weights where it has none."""
    return (rollout and rollout.canary) or CanaryState(weight=None)


def with_canary(rollout: Rollout, **changed: Any) -> Rollout:
    """With fields of the rollout, or of its canary, changed."""
    its = {name: changed.pop(name) for name in CANARY_FIELDS if name in changed}
    if its:
        changed["canary"] = replace(canary_of(rollout), **its)
    return replace(rollout, **changed)


def with_autoscaling(deployment: Deployment, **changed: Any) -> Deployment:
    """With fields of the deployment, or of its autoscaling, changed."""
    its = {name: changed.pop(name) for name in AUTOSCALING_FIELDS if name in changed}
    return replace(deployment, autoscaling=replace(deployment.autoscaling, **its), **changed)
