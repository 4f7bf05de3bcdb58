"""Decisions that no handler of ours would make."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from domain.changes import Decision, RouteChanges
from domain.handlers.deploying_provisioning import DeployingProvisioningHandler
from domain.model import Deployment, TrafficStatus
from domain.strategies.buckets import ids

Wrong = Callable[[Deployment], Decision]


@dataclass(frozen=True)
class DecidesWrongly(DeployingProvisioningHandler):
    """Like the real one, but about one deployment it is wrong."""

    wrong: Wrong
    about: UUID

    def decide(self, deployment: Deployment, now: Any) -> Decision:
        return self.wrong(deployment) if deployment.id == self.about else super().decide(deployment, now)


def creates_five_too_many(one: Deployment) -> Decision:
    assert one.deploying_revision_id
    return Decision.moved("more is better", RouteChanges.create(one.deploying_revision_id, 6))


def drains_everything(one: Deployment) -> Decision:
    return Decision.moved("away with it", RouteChanges.drain(ids(one.active_routes)))


def promotes_nothing_and_drains_blue(one: Deployment) -> Decision:
    blue = [route for route in one.active_routes if route.traffic is TrafficStatus.ACTIVE]
    return Decision.success("promoted", RouteChanges.drain(ids(blue)))


def promotes_nothing_and_parks_blue(one: Deployment) -> Decision:
    blue = [route for route in one.active_routes if route.traffic is TrafficStatus.ACTIVE]
    return Decision.success("promoted", RouteChanges.park(ids(blue), one.phase_started_at))
