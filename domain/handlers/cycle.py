"""One cycle of one deployment: the handler of its status decides, once."""

from datetime import datetime

from domain.cycle.transitions import ClassifiedDecision
from domain.handlers import HANDLERS, woken_by
from domain.handlers.base import DeploymentHandler
from domain.model.deployment import Deployment


def handler_of(deployment: Deployment) -> DeploymentHandler:
    """Find the handler that looks at a marked deployment of this status. Raises ValueError where nobody does."""
    event = woken_by(deployment.status)
    if event is None:
        raise ValueError(f"{deployment.name} is {deployment.status}, and nobody looks at it")
    return HANDLERS[event]


def cycle(deployment: Deployment, now: datetime, handler: DeploymentHandler | None = None) -> ClassifiedDecision:
    """Take one look of the handler of the deployment's status, or of this one."""
    (decision,) = (handler or handler_of(deployment)).execute([deployment], now).decisions
    return decision
