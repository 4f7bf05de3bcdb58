"""The handlers, by the event that runs them. Adding one is one file and one line here."""

from collections.abc import Mapping

from domain.handlers.base import DeploymentHandler
from domain.handlers.check_replica import CheckReplicaHandler, ReconcileHandler
from domain.handlers.deploying import DeployingProvisioningHandler, DeployingRollingBackHandler
from domain.handlers.scaling import CheckPendingHandler, DestroyingHandler, ScalingHandler
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
    """The event whose handler looks at marked deployments of this status; None where nobody does."""
    for event, handler in HANDLERS.items():
        if status in handler.targets and handler.cadence.short is not None:
            return event
    return None
