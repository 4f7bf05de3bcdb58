"""scaling: bring the current revision to the desired count and drain everything else.

the current revision does not have n ready replicas alone   -> create up to n + 1 (n without surge), drain down to n,
                                                               or wait
it has them                                                 -> ready
it took too long, or was given up                           -> ready, but degraded; reconcile tries again later
"""

from datetime import datetime, timedelta

from domain.cycle.transitions import DeploymentStatusTransitions, Transition
from domain.handlers.base import DeploymentHandler
from domain.handlers.check_replica import budget_at_rest
from domain.model.bounds import Bounds, Deadline
from domain.model.changes import Decision
from domain.model.deployment import Deployment
from domain.model.events import DeploymentLifecycleType, DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model.states import READY, DeploymentLifecycleStatus, Lifecycle
from domain.strategies.converge import converge

TIMEOUT_MINUTES = 30


class ScalingHandler(DeploymentHandler):
    name = "scaling"
    event = DoDeploymentLifecycleEvent(DeploymentLifecycleType.SCALING)
    cadence = DeploymentTaskSpec(short=5, long=30)
    lock_id = "scaling"
    targets = frozenset({DeploymentLifecycleStatus(Lifecycle.SCALING)})
    transitions = DeploymentStatusTransitions(
        success=Transition(READY, degraded=False),
        expired=Transition(READY, degraded=True),
        give_up=Transition(READY, degraded=True),
    )

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        if deployment.current_revision_id is None:
            raise ValueError(f"{deployment.name} is scaling without a revision")
        return converge(deployment, deployment.current_revision_id, budget_at_rest(deployment), now)

    def bounds(self, deployment: Deployment) -> Bounds:
        ends = deployment.phase_started_at + timedelta(minutes=TIMEOUT_MINUTES)
        return Bounds((Deadline(ends, f"the {TIMEOUT_MINUTES} minutes that scaling may take"),))
