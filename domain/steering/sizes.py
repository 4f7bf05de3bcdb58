"""A size that a person asks for in the middle of a rollout."""

from dataclasses import replace

from domain.cycle.rollout import rollout_of
from domain.model.deployment import Deployment, Rollout


def resized(deployment: Deployment, desired: int) -> Rollout:
    """The rollout for a size that holds for both revisions, on either way."""
    return replace(with_failures_allowed(deployment, desired), desired_at_start=desired, desired_with_revision=None)


def with_failures_allowed(deployment: Deployment, desired: int) -> Rollout:
    """The rollout for another size. A smaller one allows no fewer failures: what was allowed may have happened.

    n=40, 4 of 20 failed  →  scale 3: 4 of 20
    """
    rollout = rollout_of(deployment, "resize")
    limits = rollout.policy.limits
    allowed = limits.failures_allowed(deployment.desired_replicas)
    if limits.failures_allowed(desired) >= allowed:
        return rollout
    fixed = limits.model_copy(update={"failure_budget": allowed})
    return replace(rollout, policy=replace(rollout.policy, limits=fixed))
