"""The thing foreseen: a deployment as the command would leave it that is still to be given."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.model.deployment import Deployment
from domain.planning.replica_timings import Learned
from domain.steering.activation import ActivationRequest, activate
from domain.steering.command_effect import Asking

_NO_ROLLOUT_YET = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Subject:
    """The beginning: the snapshot that is foreseen, and whether the new revision says when it is healthy.

    `speaks`: how its replicas are asked, where those that run are asked otherwise.
    `missing_evidence`: a sentence when proxies do not tell a judge what it needs.
    """

    deployment: Deployment
    has_health_check: bool = True
    missing_evidence: str = ""
    speaks: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """The ingredients of a plan, at the database's time `now`."""

    subject: Subject
    learned: Learned
    now: datetime


def after_activation(deployment: Deployment, request: ActivationRequest, now: datetime) -> Deployment:
    """As the deployment is once somebody has activated a revision. Raises what `domain.steering.activation` refuses."""
    return activate(deployment, request, Asking("in a plan", now, _NO_ROLLOUT_YET)).deployment


def says_when_healthy(spec: Mapping[str, Any]) -> bool:
    """Whether a revision of this spec does: by a health check, or since another system that runs it says so itself."""
    return bool(spec.get("health_check")) or spec.get("runtime") == "external"
