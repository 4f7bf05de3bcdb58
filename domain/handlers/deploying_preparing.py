"""deploying/preparing: hosts run `prepare` of the new revision before any replica is created or drained.

it is paused, or held                                   -> stays; what dies is replaced
a host could not be prepared                            -> deploying/rolling_back, with nothing to take back
no replica is wanted, or every host is prepared         -> deploying/provisioning
otherwise                                               -> stays, with its deadlines stopped; what dies is replaced

Nothing waits for a host that is down or drained: like a host that joins later, it is prepared when it gets a replica.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from domain.cycle.evaluator import EVALUATOR, paused
from domain.cycle.transitions import DeploymentStatusTransitions, Transition
from domain.handlers.base import DeploymentHandler
from domain.model.decision import Decision, Waits, WaitsFor
from domain.model.deployment import Deployment
from domain.model.lifecycle_events import DeploymentLifecycleType, DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model.preparation import Preparation, PreparationState
from domain.model.states import (
    PREPARING,
    PROVISIONING,
    ROLLING_BACK,
    DeploymentSubStep,
)
from domain.text.numbers import number_of

_LOOKS_AGAIN = timedelta(seconds=5)
"""The last line of a host's output that people read is at most this old."""


class DeployingPreparingHandler(DeploymentHandler):
    name = "deploying_preparing"
    event = DoDeploymentLifecycleEvent(DeploymentLifecycleType.DEPLOYING, DeploymentSubStep.PREPARING)
    cadence = DeploymentTaskSpec(short=5, long=30)
    lock_id = "deploying"
    targets = frozenset({PREPARING})
    transitions = DeploymentStatusTransitions(
        success=Transition(PROVISIONING), expired=Transition(ROLLING_BACK), give_up=Transition(ROLLING_BACK)
    )

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        preparations = deployment.preparations
        stands = deployment.paused_at is not None or deployment.hold is not None
        if not stands and (failed := _in(preparations, PreparationState.FAILED)):
            return Decision.give_up(_failure(failed[0]))
        done_count = len(_in(preparations, PreparationState.DONE))
        if not stands and (not deployment.desired_replicas or done_count == len(preparations)):
            return Decision.success(_end(deployment))
        wait = Decision.wait(
            Waits(WaitsFor.HOST, _progress(preparations, done_count)), now + _LOOKS_AGAIN, clock_stopped=True
        )
        if deployment.paused_at is not None:
            wait = paused(deployment)
        elif deployment.hold is not None:
            wait = Decision.held(deployment.hold)
        return EVALUATOR.standing(deployment, wait, now)


def _in(preparations: Sequence[Preparation], state: PreparationState) -> Sequence[Preparation]:
    return [each for each in preparations if each.state is state]


def _end(deployment: Deployment) -> str:
    if not deployment.desired_replicas:
        return "no replica is wanted"
    hosts = len(deployment.preparations)
    return f"{number_of(hosts, 'host')} prepared" if hosts else "no host is there to prepare"


def _failure(failed: Preparation) -> str:
    return f"host {failed.host} could not be prepared: {failed.words}"


def _progress(preparations: Sequence[Preparation], done_count: int) -> str:
    running = [_running_in_words(each) for each in _in(preparations, PreparationState.RUNNING)]
    return ", ".join((f"{done_count} of {number_of(len(preparations), 'host')} prepared", *running))


def _running_in_words(running: Preparation) -> str:
    return f"{running.host}: {running.words}" if running.words else f"{running.host} at it"
