"""Names the states of deployments, replicas and rollouts, and the verdicts."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Word(StrEnum):
    """The words of snapshots and decisions. Pydantic writes them faster than members of other enums."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: Callable[[object], dict[str, Any]]
    ) -> dict[str, Any]:
        return {**handler(source), "serialization": {"type": "str"}}


class Lifecycle(Word):
    """The stages of a deployment's life."""

    PENDING = "pending"
    SCALING = "scaling"
    READY = "ready"
    DEPLOYING = "deploying"
    DESTROYING = "destroying"
    DESTROYED = "destroyed"


class DeploymentSubStep(Word):
    """The stages of a rollout, while deploying."""

    PREPARING = "preparing"
    PROVISIONING = "provisioning"
    ROLLING_BACK = "rolling_back"


@dataclass(frozen=True, slots=True)
class DeploymentLifecycleStatus:
    """The status of a deployment: handlers look at some, and a verdict leads to one."""

    lifecycle: Lifecycle
    sub_step: DeploymentSubStep | None = None

    @property
    def goes_forward(self) -> bool:
        """Whether a rollout leads to its new revision."""
        return self.sub_step not in (None, DeploymentSubStep.ROLLING_BACK)

    def __str__(self) -> str:
        return f"{self.lifecycle}/{self.sub_step}" if self.sub_step else str(self.lifecycle)


READY = DeploymentLifecycleStatus(Lifecycle.READY)
PREPARING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PREPARING)
PROVISIONING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PROVISIONING)
ROLLING_BACK = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.ROLLING_BACK)


class RouteStatus(Word):
    """The health of one replica, or how far its stop has come."""

    PROVISIONING = "provisioning"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    DEGRADED = "degraded"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    FAILED = "failed"

    @property
    def is_active(self) -> bool:
        """Whether it is live, and counts against the budget."""
        return self not in INACTIVE


INACTIVE = frozenset({RouteStatus.TERMINATING, RouteStatus.TERMINATED, RouteStatus.FAILED})


class TrafficStatus(Word):
    """Whether proxies should send requests to a route."""

    ACTIVE = "active"
    INACTIVE = "inactive"


class Verdict(Word):
    """The finding of a cycle. Limits turn others into EXPIRED or GIVE_UP."""

    SUCCESS = "success"
    NEED_RETRY = "need_retry"
    SKIPPED = "skipped"
    ERROR = "error"
    EXPIRED = "expired"
    GIVE_UP = "give_up"


class RolloutOutcome(StrEnum):
    """The end of a rollout."""

    COMPLETED = "completed"
    ROLLED_BACK = "rolled_back"
    SUPERSEDED = "superseded"
    DESTROYED = "destroyed"
