"""The inequalities that block a deployment: what there is, and what there would have to be.

room       3 live + 1 stopping + 1 > 4     one more would pass the ceiling
floor      2 serving - 1 < 2 to keep       one less would pass the floor
wave       1 not ready > 0 in this wave    the next wave begins when the last one is ready
count      2 ready < 3 wanted              it is not complete
stopping   1 stopping > 0                  nothing goes on before it is gone
"""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from domain.cycle.evaluator import EVALUATOR
from domain.model.deployment import Deployment, DeploymentSubStep, Lifecycle
from domain.strategies.buckets import Buckets
from domain.strategies.budget import Budget, resting_budget
from domain.words.numbers import duration


def blocked_by(deployment: Deployment, now: datetime) -> str | None:
    """All that hold, as "a, b and c"; None where none does."""
    if deployment.status.lifecycle is Lifecycle.DESTROYING:
        return f"{len(deployment.routes)} stopping > 0" if deployment.routes else None
    target = target_of(deployment)
    if target is None:
        return None
    budget, buckets = budget_now(deployment), buckets_of(deployment, target, now)
    *first, last = tuple(_inequalities(deployment, buckets, budget, now)) or ("",)
    return " and ".join(filter(None, (", ".join(first), last))) or None


def target_of(deployment: Deployment) -> UUID | None:
    """The revision that should run: on the way back the current one."""
    if deployment.status.sub_step is DeploymentSubStep.PROVISIONING:
        return deployment.deploying_revision_id
    return deployment.current_revision_id


def budget_now(deployment: Deployment) -> Budget:
    """What decisions of this moment keep to."""
    if deployment.rollout is not None:
        return EVALUATOR.budget(deployment)
    return resting_budget(deployment.desired_replicas, count_stopping=deployment.count_stopping)


def buckets_of(deployment: Deployment, target: UUID, now: datetime) -> Buckets:
    """As the strategy sorts them; on the way back and outside of a rollout nothing has to warm up."""
    return Buckets.of(deployment.routes, target, now, min_ready_of(deployment))


def min_ready_of(deployment: Deployment) -> float:
    """How long a new replica must have been healthy, in seconds."""
    if deployment.rollout is None or deployment.status.sub_step is not DeploymentSubStep.PROVISIONING:
        return 0
    return float(getattr(deployment.rollout.policy.spec, "min_ready_seconds", 0))


def _inequalities(deployment: Deployment, buckets: Buckets, budget: Budget, now: datetime) -> Iterator[str]:
    if not buckets.starting and buckets.warming:
        newest = now - max(route.status_changed_at for route in buckets.warming)
        yield f"{duration(newest)} in health < {min_ready_of(deployment):g} s"
    coming = len(buckets.starting) + len(buckets.warming)
    if coming and _is_in_waves(deployment):
        yield f"{coming} not ready > 0 in this wave"
    if budget.alone and buckets.foreign_stopping:
        yield f"{len(buckets.foreign_stopping)} stopping > 0"
    incomplete = len(buckets.ready) < budget.desired
    if incomplete:
        yield f"{len(buckets.ready)} ready < {budget.desired} wanted"
    if incomplete and buckets.room(budget) == 0:
        yield f"{buckets.occupied(budget)} + 1 > {budget.ceiling}"
    serving = sum(route.is_serving for route in (*buckets.target, *buckets.foreign))
    if buckets.foreign and serving - 1 < budget.keep:
        yield f"{serving} serving - 1 < {budget.keep} to keep"


def _is_in_waves(deployment: Deployment) -> bool:
    is_forward = deployment.status.sub_step is DeploymentSubStep.PROVISIONING
    if deployment.rollout is None or not is_forward:
        return False
    return getattr(deployment.rollout.policy.spec, "pacing", "") == "wave"
