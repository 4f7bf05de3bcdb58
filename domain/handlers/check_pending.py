"""check_pending: a deployment that has got its first revision starts scaling.

no revision yet -> wait, with the reason shown
a revision      -> scaling
"""

from datetime import datetime

from domain.cycle.transitions import STAY, DeploymentStatusTransitions, Transition
from domain.handlers.base import DeploymentHandler
from domain.model.changes import Decision
from domain.model.deployment import Deployment
from domain.model.events import DeploymentLifecycleType, DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model.states import DeploymentLifecycleStatus, Lifecycle
from domain.model.waits import Waits, WaitsFor


class CheckPendingHandler(DeploymentHandler):
    name = "check_pending"
    event = DoDeploymentLifecycleEvent(DeploymentLifecycleType.CHECK_PENDING)
    cadence = DeploymentTaskSpec(short=2, long=30)
    lock_id = "check_pending"
    targets = frozenset({DeploymentLifecycleStatus(Lifecycle.PENDING)})
    transitions = DeploymentStatusTransitions(
        success=Transition(DeploymentLifecycleStatus(Lifecycle.SCALING)), expired=STAY, give_up=STAY
    )

    def decide(self, deployment: Deployment, now: datetime) -> Decision:  # noqa: ARG002  (no clock in this phase)
        if deployment.current_revision_id is None:
            typed = f"rollway activate {deployment.name} REVISION"
            return Decision.wait(Waits(WaitsFor.PERSON, "it has no revision yet", typed=typed))
        return Decision.success(f"the first revision is there, scaling to {deployment.desired_replicas}")
