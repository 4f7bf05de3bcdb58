"""A snapshot as somebody writes it down in JSON: what is wanted, how, and the routes; validated field by field.

{"desired": 3, "strategy": "rolling_update", "spec": {"max_surge": 1},
 "routes": [{"rev": "old", "status": "healthy", "traffic": "active", "age_s": 12}]}
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from domain.commands.base import Replicas
from domain.cycle.rollout import PROVISIONING, ROLLING_BACK
from domain.model.deployment import (
    Deployment,
    Rollout,
    Route,
    RouteStatus,
    TrafficStatus,
)
from domain.strategies import parse_policy
from domain.words.errors import InvalidInputError
from domain.words.names import DeploymentName

AT = datetime(2000, 1, 1, tzinfo=UTC)
"""When the snapshot is taken: only ages matter."""

_REVISIONS = {"old": UUID(int=1), "new": UUID(int=2), "other": UUID(int=3)}
_ROLLOUT = UUID(int=4)
_DEPLOYMENT = UUID(int=5)
_LONGEST_SECONDS = 10 * 365 * 86400
_MOST_ROUTES = 20_000

_Seconds = Annotated[float, Field(ge=0, le=_LONGEST_SECONDS, strict=True, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, le=10_000, strict=True)]


class SnapshotRoute(BaseModel):
    """One replica. Those that are gone are left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rev: Literal["old", "new", "other"]
    """Of the revision that runs, of the one that is rolled out, or of another one."""
    status: Literal["provisioning", "healthy", "unhealthy", "degraded", "terminating"]
    """Its health, or that it is stopping."""
    traffic: Literal["active", "inactive"] | None = None
    """Whether proxies send it requests; left out: yes, unless it is stopping."""
    age_s: _Seconds = 3600
    """Seconds since it got its status."""
    parked_s: _Seconds | None = None
    """Seconds that it is still kept out of traffic for a fast way back; left out: it is not."""


class Snapshot(BaseModel):
    """A rollout at one moment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    deployment: DeploymentName = "web"
    """What sentences call it."""
    desired: Replicas
    """How many replicas are wanted."""
    desired_before: Replicas | None = None
    """How many were wanted before the rollout; left out: as many."""
    strategy: str
    """The name of the strategy."""
    spec: dict[str, Any] = Field(default_factory=dict)
    """Its settings, as in a policy."""
    limits: dict[str, Any] = Field(default_factory=dict)
    """The limits of the rollout, as in a policy."""
    phase: Literal["provisioning", "rolling_back"] = "provisioning"
    """On the way there, or on the way back."""
    paused: bool = False
    """Whether a person has paused it."""
    promote: bool = False
    """Whether a person has asked for the promotion."""
    failed: _Count = 0
    """How many new replicas have failed so far."""
    started_s: _Seconds = 0
    """Seconds since the rollout began."""
    routes: tuple[SnapshotRoute, ...] = Field(max_length=_MOST_ROUTES)
    """The replicas; answers name them by their place in this list, counted from 0."""


def parse_snapshot(raw: object) -> Deployment:
    """The deployment at `AT`; its n-th route is the n-th of the list. Raises InvalidInputError naming the field."""
    try:
        given = Snapshot.model_validate(raw)
    except ValidationError as error:
        raise InvalidInputError.of(error, model=Snapshot) from None
    try:
        policy = parse_policy({"strategy": given.strategy, "spec": given.spec, "limits": given.limits})
    except InvalidInputError as error:
        field = str(error.detail.get("field", "")).removeprefix("policy.")
        raise InvalidInputError(error.message.replace("policy.", ""), field=field) from None
    started = AT - timedelta(seconds=given.started_s)
    rollout = Rollout(
        id=_ROLLOUT,
        from_revision_id=_REVISIONS["old"],
        to_revision_id=_REVISIONS["new"],
        policy=policy,
        started_at=started,
        last_progress_at=started,
        deadline=started + timedelta(seconds=policy.limits.timeout_seconds),
        desired_at_start=given.desired if given.desired_before is None else given.desired_before,
        failed_routes=given.failed,
        promote_requested=given.promote,
    )
    return Deployment(
        id=_DEPLOYMENT,
        name=given.deployment,
        desired_replicas=given.desired,
        status=PROVISIONING if given.phase == "provisioning" else ROLLING_BACK,
        current_revision_id=_REVISIONS["old"],
        deploying_revision_id=_REVISIONS["new"],
        version=1,
        phase_started_at=started,
        paused_at=started if given.paused else None,
        rollout=rollout,
        routes=tuple(_route(route, place) for place, route in enumerate(given.routes)),
    )


def _route(route: SnapshotRoute, place: int) -> Route:
    """Each is a little younger than the one before it, as the order of the list says."""
    since = AT - timedelta(seconds=route.age_s)
    stopping = route.status == "terminating"
    return Route(
        id=UUID(int=place + 1),
        revision_id=_REVISIONS[route.rev],
        status=RouteStatus(route.status),
        traffic=TrafficStatus(route.traffic or ("inactive" if stopping else "active")),
        created_at=since,
        status_changed_at=since,
        parked_until=None if route.parked_s is None else AT + timedelta(seconds=route.parked_s),
    )
