"""A step on record: the inputs and the decision of a cycle, as JSON and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.model.decision import RouteChanges
from domain.model.deployment import Deployment
from domain.model.states import Verdict
from domain.strategies.builtin import stored_policy


@dataclass(slots=True)
class _Inputs:
    deployment: Deployment
    now: datetime


@dataclass(slots=True)
class _Decided:
    verdict: Verdict
    reason: str
    to: str
    revision: RevisionMove
    desired_replicas: int
    changes: RouteChanges


_DEPLOYMENT = TypeAdapter(Deployment)
_INSTANT = TypeAdapter(datetime)
_CHANGES = TypeAdapter(RouteChanges)
_INPUTS = TypeAdapter(_Inputs)
_DECIDED = TypeAdapter(_Decided)


def inputs_json(deployment: Deployment, now: datetime) -> bytes:
    """The snapshot and the time that a decision was made from, as JSON text."""
    return _INPUTS.dump_json(_Inputs(deployment, now))


def inputs_as_json(deployment: Deployment, now: datetime) -> dict[str, Any]:
    values: dict[str, Any] = _INPUTS.dump_python(_Inputs(deployment, now), mode="json")
    return values


def inputs_from_json(raw: Mapping[str, Any]) -> tuple[Deployment, datetime]:
    """The arguments of `inputs_json`. The policy goes through its strategy's own model.

    One that this release cannot read fails when it is used, as it does in a cycle.
    """
    snapshot = _told_flat(raw["deployment"])
    if (rollout := snapshot["rollout"]) is not None:
        snapshot["rollout"] = {**rollout, "policy": stored_policy(rollout["policy"])}
    return _DEPLOYMENT.validate_python(snapshot), _INSTANT.validate_python(raw["now"])


def _told_flat(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The snapshot, with the autoscaling fields as the release before recorded them."""
    state = {"rules": recorded.get("rules", ()), "metrics": recorded.get("metrics", ())}
    return {"autoscaling": {**state, "last_at": recorded.get("last_autoscaled_at")}, **recorded}


def changes_from_json(decision: Mapping[str, Any]) -> RouteChanges:
    return _CHANGES.validate_python(decision["changes"])


def decision_json(classified: ClassifiedDecision) -> bytes:
    """Write the decision as JSON text. A route that is created has no id yet, so two of these can be compared."""
    return _DECIDED.dump_json(
        _Decided(
            classified.verdict,
            classified.reason,
            str(classified.to),
            classified.revision,
            classified.desired_replicas,
            classified.changes,
        )
    )
