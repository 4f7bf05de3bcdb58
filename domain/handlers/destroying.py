"""destroying: all replicas are drained at once, and the deployment is destroyed when the last one is gone.

some routes are live       -> drain all of them
some are still stopping    -> wait
none is left               -> destroyed
"""

from datetime import datetime

from domain.cycle.transitions import STAY, DeploymentStatusTransitions, Transition
from domain.handlers.base import DeploymentHandler
from domain.model.changes import Decision, RouteChanges
from domain.model.deployment import Deployment
from domain.model.events import DeploymentLifecycleType, DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model.states import DeploymentLifecycleStatus, Lifecycle
from domain.strategies.buckets import ids
from domain.strategies.waiting import for_stopping
from domain.words.numbers import all_of, number_of


class DestroyingHandler(DeploymentHandler):
    name = "destroying"
    event = DoDeploymentLifecycleEvent(DeploymentLifecycleType.DESTROYING)
    cadence = DeploymentTaskSpec(short=5, long=60)
    lock_id = "destroying"
    targets = frozenset({DeploymentLifecycleStatus(Lifecycle.DESTROYING)})
    transitions = DeploymentStatusTransitions(
        success=Transition(DeploymentLifecycleStatus(Lifecycle.DESTROYED)), expired=STAY, give_up=STAY
    )

    def decide(self, deployment: Deployment, now: datetime) -> Decision:  # noqa: ARG002  (no clock in this phase)
        if live := deployment.active_routes:
            return Decision.moved(f"draining {all_of(len(live), 'replica')}", RouteChanges.drain(ids(live)))
        if deployment.routes:
            said = f"{number_of(len(deployment.routes), 'replica')} still stopping"
            return Decision.wait(for_stopping(said, deployment.routes))
        return Decision.success("the last replica is gone")
