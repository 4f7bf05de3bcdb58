"""The handlers, by the event that runs them. Adding one is one file and one line here."""

from collections.abc import Mapping
from datetime import datetime

from domain.cycle.transitions import ClassifiedDecision
from domain.handlers.base import DeploymentHandler
from domain.handlers.check_replica import CheckReplicaHandler, ReconcileHandler
from domain.handlers.deploying import DeployingProvisioningHandler, DeployingRollingBackHandler
from domain.handlers.scaling import CheckPendingHandler, DestroyingHandler, ScalingHandler
from domain.model.deployment import Deployment
from domain.model.lifecycle_events import DoDeploymentLifecycleEvent
from domain.model.states import DeploymentLifecycleStatus

HandlerRegistry = Mapping[DoDeploymentLifecycleEvent, DeploymentHandler]

HANDLERS: dict[DoDeploymentLifecycleEvent, DeploymentHandler] = {
    CheckPendingHandler.event: CheckPendingHandler(),
    CheckReplicaHandler.event: CheckReplicaHandler(),
    ScalingHandler.event: ScalingHandler(),
    ReconcileHandler.event: ReconcileHandler(),
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
