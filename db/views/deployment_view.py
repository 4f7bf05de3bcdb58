"""A deployment as people see it: with its replicas and its rollout, and what is to be said of it first."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from db.views.rollout_views import RolloutView, shared_fields
from db.views.route_views import RouteView
from domain.model.deployment import MOST_STARTS, Deployment
from domain.model.picture import Standing, overdue, picture, revisions_in_words, standing
from domain.model.preparation import Preparation
from domain.model.states import PREPARING, DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The revision that the last rollout did not get to, when it ended, and why."""

    revision: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentView:
    """A deployment at the database's time `now`, with its routes that are not gone yet and its running rollout.

    `waits_for`: the command that a person must give, such as resume or promote, before it continues; empty: none is.
    `failed_starts`: in a row, of `failed_revision_id`. `rolled_back`: its last rollout, for an hour after it went back.
    `unproven`: a sentence while its new revision has answered nobody; empty otherwise. `maintenance`: a sentence while
    proxies answer its callers themselves; empty otherwise. `preparations`: of the hosts, for the revision that it goes
    to, or else runs.
    """

    id: UUID
    name: str
    desired_replicas: int
    lifecycle: Lifecycle
    sub_step: DeploymentSubStep | None
    version: int
    current_revision_id: UUID | None
    deploying_revision_id: UUID | None
    current_revision: str | None
    deploying_revision: str | None
    rollout_id: UUID | None
    policy: dict[str, Any] | None
    reason: str
    degraded_reason: str | None
    retry_at: datetime | None
    failed_starts: int
    failed_revision_id: UUID | None
    due_at: datetime | None
    waits_for: str
    paused_at: datetime | None
    phase_started_at: datetime
    count_stopping: bool
    may_surge: bool
    created_at: datetime
    now: datetime
    rollout: RolloutView | None
    routes: tuple[RouteView, ...]
    unproven: str
    maintenance: str
    rolled_back: RolledBack | None = None
    preparations: tuple[Preparation, ...] = ()

    @property
    def state(self) -> str:
        """ready, deploying/provisioning, ready (degraded), ..."""
        state = str(DeploymentLifecycleStatus(self.lifecycle, self.sub_step))
        return f"{state} (degraded)" if self.degraded_reason else state

    @property
    def overdue(self) -> str:
        """A sentence when no worker looks at what is due; empty when all is well."""
        return overdue(self.lifecycle, self.due_at, self.now)

    @property
    def standing(self) -> Standing:
        """The first word to say of it, and its tone."""
        status = DeploymentLifecycleStatus(self.lifecycle, self.sub_step)
        is_paused, is_degraded = self.paused_at is not None, self.degraded_reason is not None
        is_asked = bool(self.waits_for)
        return standing(
            status, is_paused=is_paused, is_asked=is_asked, is_degraded=is_degraded, is_failing=self._is_failing
        )

    @property
    def _is_failing(self) -> bool:
        runs = {self.current_revision_id, self.deploying_revision_id}
        return self.failed_starts >= MOST_STARTS and self.failed_revision_id in runs

    @property
    def runs(self) -> str:
        """The revisions in words, by what serves; empty of a deployment that is destroyed."""
        if self.lifecycle is Lifecycle.DESTROYED:
            return ""
        serving = (route.revision for route in self.routes if route.is_serving)
        is_well = not (self._is_failing or self.degraded_reason)
        return revisions_in_words(self.current_revision, self.deploying_revision, serving, is_well=is_well)

    @property
    def why(self) -> str:
        """The last look's finding; nobody has looked yet at a deployment that is pending with a revision."""
        is_new = self.lifecycle is Lifecycle.PENDING and self.current_revision
        return f"waiting for a worker to begin with {self.current_revision}" if is_new else self.reason

    @property
    def said(self) -> str:
        """The first sentence to say of it."""
        return self.overdue or self.maintenance or self.degraded_reason or self.unproven or self.why

    @property
    def picture(self) -> str:
        """The replicas as one line, such as ■■|◇."""
        return picture(self.routes, self.current_revision_id, self.deploying_revision_id)

    @property
    def snapshot(self) -> Deployment:
        """The snapshot for commands: without start failures, rules and metrics, which only cycles read."""
        status = DeploymentLifecycleStatus(self.lifecycle, self.sub_step)
        rollout = self.rollout.snapshot if self.rollout else None
        preparations = self.preparations if status == PREPARING else ()
        own = {"rollout": rollout, "preparations": preparations}
        return Deployment(status=status, **shared_fields(self, Deployment) | own)
