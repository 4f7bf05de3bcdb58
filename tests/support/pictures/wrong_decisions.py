"""Decisions that no handler of ours would make."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from domain.handlers.deploying import DeployingProvisioningHandler
from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment
from domain.model.states import TrafficStatus
from domain.strategies.budget import ids

Wrong = Callable[[Deployment], Decision]


@dataclass(frozen=True)
class DecidesWrongly(DeployingProvisioningHandler):
    """Like the real one, but about one deployment it is wrong."""

    wrong: Wrong
    about: UUID

    def decide(self, deployment: Deployment, now: Any) -> Decision:
        return self.wrong(deployment) if deployment.id == self.about else super().decide(deployment, now)


def creates_five_too_many(deployment: Deployment) -> Decision:
    assert deployment.deploying_revision_id
    return Decision.moved("more is better", RouteChanges.create(deployment.deploying_revision_id, 6))


def drains_everything(deployment: Deployment) -> Decision:
    return Decision.moved("away with it", RouteChanges.drain(ids(deployment.active_routes)))


def promotes_nothing_and_drains_blue(deployment: Deployment) -> Decision:
    blue = [route for route in deployment.active_routes if route.traffic is TrafficStatus.ACTIVE]
    return Decision.success("promoted", RouteChanges.drain(ids(blue)))


def promotes_nothing_and_parks_blue(deployment: Deployment) -> Decision:
    blue = [route for route in deployment.active_routes if route.traffic is TrafficStatus.ACTIVE]
    return Decision.success("promoted", RouteChanges.park(ids(blue), deployment.phase_started_at))
