"""reconcile: every 30 s it finds what check_replica missed because no event told it, and what scaling gave up.

replicas are wrong, and a try is allowed    -> scaling
otherwise                                   -> wait
"""

from datetime import datetime

from domain.cycle.transitions import STAY, DeploymentStatusTransitions, Transition
from domain.handlers.base import DeploymentHandler
from domain.handlers.check_replica import drift
from domain.model.changes import Decision
from domain.model.deployment import Deployment
from domain.model.events import DeploymentLifecycleType, DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model.states import DeploymentLifecycleStatus, Lifecycle


class ReconcileHandler(DeploymentHandler):
    name = "reconcile"
    event = DoDeploymentLifecycleEvent(DeploymentLifecycleType.RECONCILE)
    cadence = DeploymentTaskSpec(short=None, long=30)
    lock_id = None
    targets = frozenset({DeploymentLifecycleStatus(Lifecycle.READY)})
    transitions = DeploymentStatusTransitions(
        success=Transition(DeploymentLifecycleStatus(Lifecycle.SCALING)), expired=STAY, give_up=STAY
    )

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        return drift(deployment, now)
