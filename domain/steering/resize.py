"""A size that a person asks for in the middle of a rollout, or has asked for after one."""

from dataclasses import replace

from domain.cycle.rollout import rollout_of
from domain.model.deployment import Deployment, Rollout
from domain.model.states import ROLLING_BACK
from domain.text.errors import WrongStateError


def resized(deployment: Deployment, desired: int) -> Rollout:
    """The rollout for a size that holds for both revisions, on either way."""
    return replace(with_failures_allowed(deployment, desired), desired_at_start=desired, desired_with_revision=None)


def resized_with_revision(deployment: Deployment, desired: int) -> Rollout:
    """The rollout for a size of its new revision, which leaves with that. Raises NoRolloutError and WrongStateError."""
    rollout_of(deployment, "resize")
    if deployment.status == ROLLING_BACK:
        message = f"{deployment.name} is rolling back: the size of the new revision leaves with it"
        raise WrongStateError(message, deployment=deployment.name)
    return replace(with_failures_allowed(deployment, desired), desired_with_revision=desired)


def size_again(deployment: Deployment, with_revision: int | None, before: int) -> int | None:
    """Return the size with which a revision is tried again: what came with it, unless somebody has scaled since.

    3 replicas → v2 with 5, rolled back to 3 → retry: 5; → scale 8, retry: 8
    """
    has_scaled = deployment.rollout is None and deployment.desired_replicas != before
    return None if has_scaled else with_revision


def with_failures_allowed(deployment: Deployment, desired: int) -> Rollout:
    """The rollout for another size. A smaller one allows no fewer failures: what was allowed may have happened.

    n=40, 4 of 20 failed  →  scale 3: 4 of 20
    """
    rollout = _seen_anew(rollout_of(deployment, "resize"), deployment.desired_replicas, desired)
    limits = rollout.policy.limits
    allowed = limits.failures_allowed(deployment.desired_replicas)
    if limits.failures_allowed(desired) >= allowed:
        return rollout
    fixed = limits.model_copy(update={"failure_budget": allowed})
    return replace(rollout, policy=replace(rollout.policy, limits=fixed))


def _seen_anew(rollout: Rollout, before: int, desired: int) -> Rollout:
    """From none on: the time of a canary's weight begins, in which somebody may answer."""
    canary = rollout.canary
    if canary is None or canary.weight is None or before or not desired:
        return rollout
    return replace(rollout, canary=canary.at(canary.stage, canary.weight))
