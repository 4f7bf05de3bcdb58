"""What asking for a revision means, for every state a deployment can be in.

destroying, destroyed                                -> error
deploying to the same revision                       -> resume: the running rollout is the answer
deploying to another, or rolling back                -> error naming both ways out, unless supersede
no revision yet                                      -> it becomes the first one
already current, nothing of another revision live    -> nothing to do
already current                                      -> converge
a policy                                             -> begin a rollout
no policy                                            -> the pointer moves, converge replaces the routes
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from domain.errors import DeploymentAlreadyInProgressError, WrongStateError
from domain.model import Deployment, DeploymentSubStep, Lifecycle
from domain.policy import DeploymentPolicy


class Activation(StrEnum):
    """What an activation comes to."""

    FIRST = "first"
    RESUMED = "resumed"
    BEGUN = "begun"
    SUPERSEDED = "superseded"
    MOVED = "moved"
    CONVERGING = "converging"
    ALREADY_ACTIVE = "already_active"


@dataclass(frozen=True, slots=True)
class ActivationRequest:
    """Which revision to activate, by id and name, and how. `deploying_name`: of the revision being deployed, if any."""

    revision_id: UUID
    revision_name: str
    deploying_name: str | None
    policy: DeploymentPolicy | None
    supersede: bool = False


def decide_activation(deployment: Deployment, request: ActivationRequest) -> Activation:
    """Raises WrongStateError and DeploymentAlreadyInProgressError; changes nothing."""
    match deployment.status.lifecycle:
        case Lifecycle.DESTROYING | Lifecycle.DESTROYED:
            raise WrongStateError(
                f"{deployment.name} is {deployment.status}; a revision can be activated until it is destroyed",
                deployment=deployment.name,
                state=deployment.status,
            )
        case Lifecycle.PENDING:
            return Activation.FIRST
        case Lifecycle.DEPLOYING:
            return _while_deploying(deployment, request)
        case Lifecycle.READY | Lifecycle.SCALING:
            return _while_resting(deployment, request)


def _while_deploying(deployment: Deployment, request: ActivationRequest) -> Activation:
    rolling_back = deployment.status.sub_step is DeploymentSubStep.ROLLING_BACK
    if request.revision_id == deployment.deploying_revision_id and not rolling_back:
        return Activation.RESUMED
    if request.supersede:
        return Activation.SUPERSEDED
    doing = "rolling back from" if rolling_back else "deploying"
    message = (
        f"{deployment.name} is {doing} {request.deploying_name}; wait until that has ended, "
        f"or activate {request.revision_name} with supersede to leave it"
    )
    raise DeploymentAlreadyInProgressError(
        message, deployment=deployment.name, deploying=request.deploying_name, asked_for=request.revision_name
    )


def _while_resting(deployment: Deployment, request: ActivationRequest) -> Activation:
    if request.revision_id == deployment.current_revision_id:
        foreign = any(
            route.revision_id != request.revision_id and route.parked_until is None
            for route in deployment.active_routes
        )
        return Activation.CONVERGING if foreign else Activation.ALREADY_ACTIVE
    return Activation.BEGUN if request.policy else Activation.MOVED
