"""What is stored of what a document describes: an apply is held against it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from domain.autoscaling.rule import AutoscalingRule
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.traffic.published import Entrance
from domain.traffic.release import Reached
from domain.traffic.wire import Wire


@dataclass(frozen=True, slots=True)
class StoredRevision:
    """A revision as it is stored: `spec` holds its values. `wire`: how its replicas are spoken to; None: as all are."""

    id: UUID
    name: str
    spec: dict[str, Any]
    wire: Wire | None = None


@dataclass(frozen=True, slots=True)
class StoredDeployment:
    """The stored parts of a deployment beside its snapshot.

    `current` and `deploying` are the names of its revisions. `release`: where its rollout leads callers, if that brings
    settings. `failed_starts`: so many in a row, and none has come up since. `rules`: these set its size.
    """

    snapshot: Deployment
    policy: DeploymentPolicy | None
    current: str | None
    deploying: str | None
    reached: Reached
    failed_starts: int = 0
    release: Reached | None = None
    rules: tuple[AutoscalingRule, ...] = ()

    @property
    def is_held_back(self) -> bool:
        """Whether starts are tried ever more slowly, or have been given up for a while."""
        return bool(self.failed_starts or self.snapshot.degraded_reason or self.snapshot.retry_at)


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored side of a document: its deployment, and the revision of its name.

    `is_restarted`: what runs is a restart of that revision. `owners`: which other deployments have entrances that the
    document names.
    """

    deployment: StoredDeployment | None = None
    revision: StoredRevision | None = None
    is_restarted: bool = False
    owners: Mapping[Entrance, str] = field(default_factory=dict)
