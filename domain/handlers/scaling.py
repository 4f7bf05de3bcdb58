"""The handlers of one revision: it starts scaling, is brought to its count, and is drained when it is destroyed."""

from datetime import datetime, timedelta

from domain.cycle.transitions import STAY, Bounds, Deadline, DeploymentStatusTransitions, Transition
from domain.handlers.base import DeploymentHandler
from domain.handlers.check_replica import budget_at_rest
from domain.model.decision import Decision, RouteChanges, Waits, WaitsFor
from domain.model.deployment import Deployment
from domain.model.lifecycle_events import DeploymentLifecycleType, DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model.states import READY, DeploymentLifecycleStatus, Lifecycle
from domain.strategies.budget import ids
from domain.strategies.converge import converge
from domain.strategies.messages import for_stopping
from domain.text.numbers import all_of, number_of


class CheckPendingHandler(DeploymentHandler):
    """check_pending: a deployment that has got its first revision starts scaling.

    no revision yet -> wait, with the reason shown
    a revision      -> scaling
    """

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


TIMEOUT_MINUTES = 30


class ScalingHandler(DeploymentHandler):
    """scaling: bring the current revision to the desired count and drain everything else.

    the current revision does not have n ready replicas alone   -> create up to n + 1 (n without surge), drain to n, or
                                                                   wait
    it has them                                                 -> ready
    it took too long, or was given up                           -> ready, but degraded; reconcile tries again later
    """

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


class DestroyingHandler(DeploymentHandler):
    """destroying: all replicas are drained at once, and the deployment is destroyed after the last.

    some routes are live       -> drain all of them
    some are still stopping    -> wait
    none is left               -> destroyed
    """

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
            sentence = f"{number_of(len(deployment.routes), 'replica')} still stopping"
            return Decision.wait(for_stopping(sentence, deployment.routes))
        return Decision.success("the last replica is gone")
