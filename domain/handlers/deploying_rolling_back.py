"""deploying/rolling_back: the strategy leads back to the current revision, within the same budget.

it is paused                             -> stays; what dies is replaced
routes of another revision are live, or
the current revision is incomplete       -> stays; it goes back step by step, and no deadline ends that
no replica is left, nor comes up         -> ready, but degraded
only the current revision is live, and
it is complete                           -> ready; the deploying revision is cleared
"""

from datetime import datetime

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.transitions import STAY, DeploymentStatusTransitions, RevisionMove, Transition
from domain.handlers.base import DeploymentHandler
from domain.model.changes import Decision
from domain.model.deployment import Deployment
from domain.model.events import DeploymentLifecycleType, DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model.states import READY, ROLLING_BACK, DeploymentSubStep


class DeployingRollingBackHandler(DeploymentHandler):
    name = "deploying_rolling_back"
    event = DoDeploymentLifecycleEvent(DeploymentLifecycleType.DEPLOYING, DeploymentSubStep.ROLLING_BACK)
    cadence = DeploymentTaskSpec(short=5, long=30)
    lock_id = "deploying"
    targets = frozenset({ROLLING_BACK})
    transitions = DeploymentStatusTransitions(
        success=Transition(READY, RevisionMove.CLEAR, degraded=False),
        expired=Transition(READY, RevisionMove.CLEAR, degraded=True),
        give_up=STAY,
    )

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        return EVALUATOR.evaluate_back(deployment, now)
