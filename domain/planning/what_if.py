"""Suppositions about a deployment: another count, other settings, more failures."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.rollout import rollout_of
from domain.model.deployment import Deployment
from domain.model.states import RouteStatus
from domain.planning.simulator import with_status
from domain.steering.verbs import scale
from domain.strategies.budget import worst_first
from domain.strategies.builtin import parse_policy
from domain.text.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Supposing:
    """A supposition. `spec`: settings of the strategy, by name. `failures`: further new replicas that fail now."""

    replicas: int | None = None
    strategy: str | None = None
    failures: int = 0
    spec: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """E.g. {"replicas": 5, "max_surge": 2}: any other name than a field is a setting. Raises InvalidInputError."""
        for name in ("replicas", "failures"):
            value = settings.get(name, 0)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidInputError(f"{name}: must be a number of replicas, such as 3", field=name)
        own = {name: settings[name] for name in ("replicas", "strategy", "failures") if name in settings}
        return cls(**own, spec={name: value for name, value in settings.items() if name not in own})


def hypothetical(deployment: Deployment, supposing: Supposing, now: datetime) -> Deployment:
    """The snapshot with the supposition. Raises InvalidInputError for settings, NoRolloutError without a rollout."""
    if supposing.replicas is not None:
        deployment = scale(deployment, supposing.replicas).deployment
    if supposing.strategy is not None or supposing.spec:
        deployment = _with_policy(deployment, supposing)
    return _with_failures(deployment, supposing.failures, now) if supposing.failures else deployment


def _with_policy(deployment: Deployment, supposing: Supposing) -> Deployment:
    """Another strategy begins with the present replicas; an undo has no weights under any strategy."""
    rollout = rollout_of(deployment, "suppose settings of")
    policy = rollout.policy.as_json()
    strategy = supposing.strategy or policy["strategy"]
    spec = policy["spec"] if strategy == policy["strategy"] else {}
    otherwise = parse_policy({"strategy": strategy, "spec": {**spec, **supposing.spec}, "limits": policy["limits"]})
    rollout = replace(rollout, policy=otherwise)
    if strategy != policy["strategy"]:
        canary = None if rollout.is_undo else EVALUATOR.strategy_of(otherwise).begins_with(deployment, otherwise.spec)
        rollout = replace(rollout, canary=canary)
    return replace(deployment, rollout=rollout)


def _with_failures(deployment: Deployment, failures: int, now: datetime) -> Deployment:
    """Starting replicas fail first, then sick ones, then healthy ones; failures beyond their number are counted too."""
    rollout = rollout_of(deployment, "suppose failures of")
    new = [route for route in deployment.active_routes if route.revision_id == rollout.to_revision_id]
    starting = [route for route in new if route.status is RouteStatus.PROVISIONING]
    others = worst_first(route for route in new if route.status is not RouteStatus.PROVISIONING)
    failing = [route.id for route in (*starting, *others)][:failures]
    deployment = with_status(deployment, failing, RouteStatus.FAILED, now)
    rollout = rollout_of(deployment, "suppose failures of")
    beyond = failures - len(failing)
    return replace(deployment, rollout=replace(rollout, failed_routes=rollout.failed_routes + beyond))
