"""A cycle's inputs as JSON and back: what makes a decision replayable."""

from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from domain.changes import RouteChanges
from domain.model import Deployment
from domain.strategies import STRATEGIES, DeploymentStrategyRegistry, parse_policy
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
    """What `inputs_json` was given. The policy goes through its strategy's own model."""
    snapshot = dict(raw["deployment"])
    if snapshot["rollout"] is not None:
        policy = parse_policy(snapshot["rollout"]["policy"], strategies)
        snapshot["rollout"] = {**snapshot["rollout"], "policy": policy}
    return _DEPLOYMENT.validate_python(snapshot), _INSTANT.validate_python(raw["now"])


def decision_json(classified: ClassifiedDecision) -> dict[str, Any]:
    """What was decided, in words and data."""
    return {
        "verdict": str(classified.verdict),
        "reason": classified.reason,
        "to": str(classified.to),
        "revision": str(classified.revision),
        "changes": _CHANGES.dump_python(classified.changes, mode="json"),
    }
