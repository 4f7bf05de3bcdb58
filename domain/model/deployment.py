"""The snapshot from which decisions are made."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from domain.autoscaling.rule import NO_AUTOSCALING, AutoscalingState
from domain.devices.room import DeviceRoom
from domain.model.canary import CanaryState
from domain.model.policy import DeploymentPolicy
from domain.model.preparation import Preparation
from domain.model.states import PREPARING, DeploymentLifecycleStatus, RouteStatus, TrafficStatus


@dataclass(frozen=True, slots=True)
class Hold:
    """The reason why it waits, in a sentence, and until when at least."""

    reason: str
    until: datetime


MOST_STARTS = 3
"""Nobody waits for a fourth start that fails."""


@dataclass(frozen=True, slots=True)
class Route:
    """One replica, its health and whether it gets requests.

    `parked_until`: until then it runs for a fast way back, gets no requests, and no budget counts it.
    `kept_until`: while sick, as it answers callers.
    `is_misplaced`: its host is drained, and another takes replicas of its revision.
    `has_lent`: it sleeps, and others may have its devices.
    """

    id: UUID
    revision_id: UUID
    status: RouteStatus
    traffic: TrafficStatus
    created_at: datetime
    status_changed_at: datetime
    parked_until: datetime | None = None
    is_misplaced: bool = False
    kept_until: datetime | None = None
    has_lent: bool = False

    @property
    def is_active(self) -> bool:
        """Whether the replica is live."""
        return self.status.is_active

    @property
    def is_serving(self) -> bool:
        """Whether it is healthy and gets requests: the floor counts these."""
        return self.status is RouteStatus.HEALTHY and self.traffic is TrafficStatus.ACTIVE


class RouteCounts(NamedTuple):
    """Live routes of the new revision, as Postgres counts them. `idle`: without traffic."""

    starting: int
    healthy: int
    idle: int


@dataclass(frozen=True, slots=True)
class Rollout:
    """One attempt to move from one revision to another, with its own clocks and counters.

    `desired_at_start`: the size before it, to which the way back leads.
    `desired_with_revision`: the size that came with the new revision, if any.
    `clock_stopped_at`: since when its deadlines stand still.
    `is_undo`: started with `undo`. `last_failure`: why a new replica failed last, with the end of its log.
    `in_use`: the old revision has answered somebody meanwhile. `unanswered`: requests sent to the new revision, which
    answered none; None once it has.
    `canary`: its stage and weight; None for other strategies.
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
    in_use: bool = False
    unanswered: int | None = 0
    canary: CanaryState | None = None


@dataclass(frozen=True, slots=True)
class StartFailures:
    """The failed starts of one revision in a row, `short_lives` of them soon after coming up.

    `came_up_at`: when a replica came up after the last failure.
    """

    revision_id: UUID
    in_a_row: int
    last_at: datetime
    came_up_at: datetime | None = None
    short_lives: int = 0


@dataclass(frozen=True, slots=True)
class Deployment:
    """The snapshot of one deployment: its row, its running rollout, and its routes that are not gone yet.

    `phase_attempts`: errors in a row since `phase_started_at`. `degraded_reason`: why scaling gave up, which tries
    again at `retry_at`; or that replicas end soon after they have come up, where `retry_at` is over.
    `count_stopping`, `may_surge`: as its policy says, outside a rollout.
    `preparations`: of the hosts for its deploying revision, while it is preparing.
    `hold`: why the rollout may not go forward now. `autoscaling`: rules and their values, where it is ready.
    `devices`: the room for its revisions that need some.
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
    may_surge: bool = True
    preparations: tuple[Preparation, ...] = field(default=())
    devices: DeviceRoom | None = None

    @property
    def stands_still(self) -> bool:
        """Whether its rollout is held, paused or prepared: dead replicas are replaced, and nothing goes forward."""
        return self.paused_at is not None or self.hold is not None or self.status == PREPARING

    @property
    def active_routes(self) -> tuple[Route, ...]:
        """All live routes, healthy or not."""
        return tuple(route for route in self.routes if route.is_active)
