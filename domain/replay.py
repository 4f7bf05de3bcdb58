"""A cycle's inputs as JSON and back, and the decision made from them once more: stored == replayed."""

from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from domain.changes import RouteChanges
from domain.errors import InvalidInputError
from domain.handlers import HANDLERS
from domain.model import Deployment
from domain.strategies import STRATEGIES, DeploymentStrategyRegistry, stored_policy
from domain.transitions import ClassifiedDecision

_DEPLOYMENT = TypeAdapter(Deployment)
_CHANGES = TypeAdapter(RouteChanges)
_INSTANT = TypeAdapter(datetime)


def inputs_json(deployment: Deployment, now: datetime) -> dict[str, Any]:
    """The snapshot and the time that a decision was made from."""
    snapshot = _DEPLOYMENT.dump_python(deployment, mode="json", exclude={"rollout": {"policy"}})
    if deployment.rollout is not None:
        snapshot["rollout"]["policy"] = deployment.rollout.policy.as_json()
    return {"deployment": snapshot, "now": _INSTANT.dump_python(now, mode="json")}


def inputs_from_json(
    raw: dict[str, Any], strategies: DeploymentStrategyRegistry = STRATEGIES
) -> tuple[Deployment, datetime]:
    """What `inputs_json` was given. The policy goes through its strategy's own model.

    One that this release cannot read fails when it is used, as it does in a cycle.
    """
    snapshot = dict(raw["deployment"])
    if snapshot["rollout"] is not None:
        policy = stored_policy(snapshot["rollout"]["policy"], strategies)
        snapshot["rollout"] = {**snapshot["rollout"], "policy": policy}
    return _DEPLOYMENT.validate_python(snapshot), _INSTANT.validate_python(raw["now"])


def decision_json(classified: ClassifiedDecision) -> dict[str, Any]:
    """What was decided, in words and data. A route that is created has no id yet, so two of these can be compared."""
    return {
        "verdict": str(classified.verdict),
        "reason": classified.reason,
        "to": str(classified.to),
        "revision": str(classified.revision),
        "desired_replicas": classified.desired_replicas,
        "changes": _CHANGES.dump_python(classified.changes, mode="json"),
    }


def replay_step(inputs: dict[str, Any], phase: str) -> dict[str, Any]:
    """The decision that the handler named `phase` makes from a stored step's inputs, in the form of `decision_json`.

    It differs from the stored one when the code has changed since, or when Postgres refused to write what was decided:
    such a step is stored as an error that no decision made. Raises InvalidInputError for an unknown phase.
    """
    handler = next((one for one in HANDLERS.values() if one.name == phase), None)
    if handler is None:
        names = ", ".join(one.name for one in HANDLERS.values())
        raise InvalidInputError(f"phase must be one of {names}, not {phase!r}", field="phase")
    deployment, now = inputs_from_json(inputs)
    (classified,) = handler.execute([deployment], now).everything
    return decision_json(classified)
