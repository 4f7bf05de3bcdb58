"""What is foreseen: a deployment as the command would leave it that is still to be given."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.activation import ActivationRequest, activate
from domain.model import Deployment
from domain.steered import Asking

_NO_ROLLOUT_YET = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is foreseen: the snapshot from which it begins, and whether the new revision says when it is healthy."""

    deployment: Deployment
    has_health_check: bool = True


def after_activation(deployment: Deployment, request: ActivationRequest, now: datetime) -> Deployment:
    """As the deployment is once somebody has activated a revision. Raises what `domain.activation` refuses."""
    return activate(deployment, request, Asking("in a plan", now, _NO_ROLLOUT_YET)).deployment
