"""The frozen snapshot that every decision is made from, and the words for its states."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from domain.model.autoscaling import NO_AUTOSCALING, AutoscalingState
from domain.model.canary import CanaryState
from domain.model.hold import Hold
from domain.model.policy import DeploymentPolicy


class Lifecycle(StrEnum):
    """Where a deployment is in its life."""

    PENDING = "pending"
    SCALING = "scaling"
    READY = "ready"
    DEPLOYING = "deploying"
    DESTROYING = "destroying"
    DESTROYED = "destroyed"


class DeploymentSubStep(StrEnum):
    """Where a rollout is, while the deployment is deploying."""

    PROVISIONING = "provisioning"
    ROLLING_BACK = "rolling_back"


@dataclass(frozen=True, slots=True)
class DeploymentLifecycleStatus:
    """What a handler targets and where a verdict leads."""

    lifecycle: Lifecycle
    sub_step: DeploymentSubStep | None = None

    def __str__(self) -> str:
        return f"{self.lifecycle}/{self.sub_step}" if self.sub_step else str(self.lifecycle)


class RouteStatus(StrEnum):
    """The health of one replica, and how far it is on its way out."""

    PROVISIONING = "provisioning"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    DEGRADED = "degraded"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    FAILED = "failed"

    @property
    def is_active(self) -> bool:
        """Live: it counts against the budget. Everything that is not on its way out or gone."""
        return self not in _INACTIVE


_INACTIVE = frozenset({RouteStatus.TERMINATING, RouteStatus.TERMINATED, RouteStatus.FAILED})


class TrafficStatus(StrEnum):
    """Whether proxies should send requests to a route."""

    ACTIVE = "active"
    INACTIVE = "inactive"


class Verdict(StrEnum):
    """What a cycle found. EXPIRED and GIVE_UP come out of the classification (and GIVE_UP of a strategy)."""

    SUCCESS = "success"
    NEED_RETRY = "need_retry"
    SKIPPED = "skipped"
    ERROR = "error"
    EXPIRED = "expired"
    GIVE_UP = "give_up"


class RolloutOutcome(StrEnum):
    """How a rollout ended."""

    COMPLETED = "completed"
    ROLLED_BACK = "rolled_back"
    SUPERSEDED = "superseded"
    DESTROYED = "destroyed"


@dataclass(frozen=True, slots=True)
class Route:
    """One replica and its place in traffic. `status_changed_at` is when it got its present status.

    `parked_until`: kept running, out of traffic, for a fast way back; until then no budget counts it.
    """

    id: UUID
    revision_id: UUID
    status: RouteStatus
    traffic: TrafficStatus
    created_at: datetime
    status_changed_at: datetime
    parked_until: datetime | None = None

    @property
    def is_active(self) -> bool:
        """Live: it counts against the budget."""
        return self.status.is_active

    @property
    def is_serving(self) -> bool:
        """Healthy, and proxies are told to use it: what the floor of the budget counts."""
        return self.status is RouteStatus.HEALTHY and self.traffic is TrafficStatus.ACTIVE


@dataclass(frozen=True, slots=True)
class Rollout:
    """One attempt to move a deployment from one revision to another, with its own clocks and counters.

    `desired_at_start`: the size before it began and on the way back. `desired_with_revision`: one that came with it.
    `clock_stopped_at` is set while it waits for a person, or is held; the deadlines then stand still.
    `is_undo`: asked for as the way back. `last_failure`: why a new replica failed last, with the end of its log.
    `canary`: how far its weights are; None where the strategy has none.
    """

    id: UUID
    from_revision_id: UUID
    to_revision_id: UUID
    policy: DeploymentPolicy
    started_at: datetime
    last_progress_at: datetime
    deadline: datetime
    desired_at_start: int
    desired_with_revision: int | None = None
    failed_routes: int = 0
    steps: int = 0
    clock_stopped_at: datetime | None = None
    promote_requested: bool = False
    is_undo: bool = False
    last_failure: str | None = None
    canary: CanaryState | None = None


@dataclass(frozen=True, slots=True)
class StartFailures:
    """Starts of one revision that failed in a row, `short_lives` of them soon after they had come up.

    `came_up_at`: since when one is well that came up after the last failure; None when none did.
    """

    revision_id: UUID
    in_a_row: int
    last_at: datetime
    came_up_at: datetime | None = None
    short_lives: int = 0


@dataclass(frozen=True, slots=True)
class Deployment:
    """The snapshot of one deployment: its row, its running rollout, and its routes that are not gone yet.

    `routes`: active and terminating ones. `phase_attempts`: errors in a row since `phase_started_at`. `degraded_reason`
    and `retry_at`: scaling gave up, and nothing is tried before then. `count_stopping`: what its policy says, for the
    time outside a rollout. `hold`: why its rollout may not go forward. `autoscaling`: read when it is ready.
    """

    id: UUID
    name: str
    desired_replicas: int
    status: DeploymentLifecycleStatus
    current_revision_id: UUID | None
    deploying_revision_id: UUID | None
    version: int
    phase_started_at: datetime
    phase_attempts: int = 0
    paused_at: datetime | None = None
    rollout: Rollout | None = None
    hold: Hold | None = None
    start_failures: StartFailures | None = None
    degraded_reason: str | None = None
    retry_at: datetime | None = None
    routes: tuple[Route, ...] = field(default=())
    autoscaling: AutoscalingState = NO_AUTOSCALING
    count_stopping: bool = False

    @property
    def active_routes(self) -> tuple[Route, ...]:
        """The live routes, whatever their revision, health and traffic."""
        return tuple(route for route in self.routes if route.is_active)
