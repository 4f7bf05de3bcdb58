"""The handlers, by the event that runs them; and how one decides a recorded step again.

Adding a handler is one file and one line here. Stored == replayed, as long as the code decides the same.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from domain.cycle.recording import decision_json, inputs_from_json
from domain.cycle.transitions import MAX_ATTEMPTS, ClassifiedDecision
from domain.handlers.base import DeploymentHandler
from domain.handlers.check_replica import CheckReplicaHandler, ReconcileHandler
from domain.handlers.deploying import DeployingProvisioningHandler, DeployingRollingBackHandler
from domain.handlers.deploying_preparing import DeployingPreparingHandler
from domain.handlers.scaling import CheckPendingHandler, DestroyingHandler, ScalingHandler
from domain.model.deployment import Deployment
from domain.model.lifecycle_events import DoDeploymentLifecycleEvent
from domain.model.states import DeploymentLifecycleStatus, Verdict
from domain.text.errors import InvalidInputError

HandlerRegistry = Mapping[DoDeploymentLifecycleEvent, DeploymentHandler]

HANDLERS: dict[DoDeploymentLifecycleEvent, DeploymentHandler] = {
    CheckPendingHandler.event: CheckPendingHandler(),
    CheckReplicaHandler.event: CheckReplicaHandler(),
    ScalingHandler.event: ScalingHandler(),
    ReconcileHandler.event: ReconcileHandler(),
    DeployingPreparingHandler.event: DeployingPreparingHandler(),
    DeployingProvisioningHandler.event: DeployingProvisioningHandler(),
    DeployingRollingBackHandler.event: DeployingRollingBackHandler(),
    DestroyingHandler.event: DestroyingHandler(),
}


def woken_by(status: DeploymentLifecycleStatus) -> DoDeploymentLifecycleEvent | None:
    """The event whose handler looks at marked deployments of this status; None if there is none."""
    for event, handler in HANDLERS.items():
        if status in handler.targets and handler.cadence.short is not None:
            return event
    return None


def handler_of(deployment: Deployment) -> DeploymentHandler:
    """The handler that looks at a marked deployment of this status. Raises ValueError without one."""
    event = woken_by(deployment.status)
    if event is None:
        raise ValueError(f"{deployment.name} is {deployment.status}, and nobody looks at it")
    return HANDLERS[event]


def cycle(deployment: Deployment, now: datetime, handler: DeploymentHandler | None = None) -> ClassifiedDecision:
    """Take one look of the handler of the deployment's status, or of this one."""
    (decision,) = (handler or handler_of(deployment)).execute([deployment], now).decisions
    return decision


def replay_step(inputs: Mapping[str, Any], phase: str) -> dict[str, Any]:
    """The decision of the handler `phase` about a stored step's inputs, as `decision_json` has it.

    It differs from the stored one when the code has changed since, or when Postgres refused to write what was decided:
    such a step is stored as an error that no decision made. Raises InvalidInputError for an unknown phase.
    """
    return as_recorded(decided_again(*inputs_from_json(inputs), phase))


def as_recorded(classified: ClassifiedDecision) -> dict[str, Any]:
    """A decision in the form in which it would be recorded now."""
    decision: dict[str, Any] = json.loads(decision_json(classified))
    return decision


def decided_again(deployment: Deployment, now: datetime, phase: str) -> ClassifiedDecision:
    """The decision of the handler `phase` about this snapshot. Raises InvalidInputError for an unknown phase."""
    handler = next((candidate for candidate in HANDLERS.values() if candidate.name == phase), None)
    if handler is None:
        names = ", ".join(each.name for each in HANDLERS.values())
        raise InvalidInputError(f"phase must be one of {names}, not {phase!r}", field="phase")
    return cycle(deployment, now, handler)


def is_same_decision(recorded: Mapping[str, Any], replayed: Mapping[str, Any]) -> bool:
    """Whether two decisions do the same. A later release may word the reason better; nothing follows from it."""
    return _without_reason(recorded) == _without_reason(replayed)


def _without_reason(decision: Mapping[str, Any]) -> dict[str, Any]:
    """Earlier releases wrote neither stages nor sleepers."""
    return {**decision, "reason": "", "changes": {"stage": None, "woken": [], **decision["changes"]}}


def records_a_failed_write(attempts: int, decision: Mapping[str, Any]) -> bool:
    """Whether a step records that Postgres refused its decision: an error, or giving up after the last of a row.

    `attempts`: errors in a row before it.
    """
    if decision["verdict"] == Verdict.GIVE_UP:
        return attempts + 1 >= MAX_ATTEMPTS
    return bool(decision["verdict"] == Verdict.ERROR)
