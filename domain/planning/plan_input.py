"""The inputs of planning: a deployment as a command would leave it, and its surroundings."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.model.deployment import Deployment
from domain.model.preparation import Preparation
from domain.model.states import PREPARING
from domain.planning.replica_timings import Timings
from domain.steering.activation import ActivationRequest, activate
from domain.steering.command_effect import Context
from domain.steering.device_check import DeviceCase


@dataclass(frozen=True, slots=True)
class WaitContext:
    """The surroundings of a deployment. Unknown parts are left out, and no sentence mentions them.

    `hosts`: by route, where its replica runs; None: it has no host yet. `without_host`: by route without a host, the
    labels that no host up has. `reasons`: by route, the reason of its status.
    `down`: hosts that are down. `lacking`: by host, which secret of the revision it lacks, and why. `missing_worker`: a
    sentence when no worker works. `due_at`: the next look. `last_reason`: the finding of the last look. `failure`: why
    the last start failed, where starts fail now. `unproven`: a sentence while the new
    revision has answered nobody. `back`: why its rollout goes back, where it does. `paused`: by whom, and why.
    """

    hosts: Mapping[UUID, str | None] = field(default_factory=dict)
    without_host: Mapping[UUID, str] = field(default_factory=dict)
    reasons: Mapping[UUID, str] = field(default_factory=dict)
    down: frozenset[str] = frozenset()
    lacking: Mapping[str, str] = field(default_factory=dict)
    timings: Timings = field(default_factory=Timings)
    missing_worker: str = ""
    due_at: datetime | None = None
    last_reason: str = ""
    failure: str = ""
    unproven: str = ""
    back: str = ""
    paused: str = ""


NOTHING_KNOWN = WaitContext()


_NO_ROLLOUT_YET = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Subject:
    """The start of a plan: the snapshot, and whether the new revision has a health check.

    `speaks`: the protocol of its replicas, where the running ones have another.
    `missing_evidence`: a sentence when proxies do not report what a judge needs.
    """

    deployment: Deployment
    has_health_check: bool = True
    missing_evidence: str = ""
    speaks: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """The ingredients of a plan, at the database's time `now`."""

    subject: Subject
    timings: Timings
    now: datetime


@dataclass(frozen=True, slots=True)
class HostsAhead:
    """The devices for replicas of a revision that is to be activated, and the preparations of its hosts.

    `devices`: None if it needs no devices. `preparations`: None if it prepares no hosts.
    """

    devices: DeviceCase | None = None
    preparations: tuple[Preparation, ...] | None = None

    def prepared(self, deployment: Deployment) -> Deployment:
        """The deployment, with the preparations of its hosts while it is preparing."""
        if deployment.status != PREPARING:
            return deployment
        return replace(deployment, preparations=self.preparations or ())


def after_activation(
    deployment: Deployment, request: ActivationRequest, now: datetime, hosts: HostsAhead
) -> Deployment:
    """The deployment after an activation. Raises the refusals of `domain.steering.activation`."""
    request = replace(request, prepares=hosts.preparations is not None, devices=hosts.devices)
    return hosts.prepared(activate(deployment, request, Context("in a plan", now, _NO_ROLLOUT_YET)).deployment)


def says_when_healthy(spec: Mapping[str, Any]) -> bool:
    """Whether replicas of this spec show their health: by a check, or by reports of the system that runs them."""
    return bool(spec.get("health_check")) or spec.get("runtime") == "external"
