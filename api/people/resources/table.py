"""The resources: each path with its method, who may ask, and which command or read it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from psycopg import Connection

from api.people.asking.asked import (
    AbbreviatedParameters,
    ApplyParameters,
    Asked,
    DifferenceParameters,
    LogParameters,
    NamedPageParameters,
    PageParameters,
    Parameters,
    ProgressParameters,
    RouteParameters,
    StepParameters,
)
from api.people.reads import applied, decided, logs, revisions, set_up
from api.people.reads import deployments as reads
from db.audit.shown import why_shown
from db.proxies.acks import list_proxies
from db.views.fleet.hosts import all_hosts
from db.views.fleet.signs import signs_of_life
from db.views.fleet.subscriptions import all_subscriptions
from db.views.fleet.windows import freezes_shown, groups_shown
from domain.commands.base import DEPLOYMENT, Command, DeploymentCommand
from domain.commands.registry import COMMANDS
from domain.installation.tokens import Role

IN_HEADERS = {
    "request_id": "the header Idempotency-Key",
    "actor": "the name of the token",
    "expected_version": "the header If-Match",
    "schema_version": "the path, as /v1",
}
"""Fields of commands that no body has, and what says the same over HTTP."""


@dataclass(frozen=True, slots=True)
class HttpResource:
    """One method of one path. `role`: the least that may ask; `is_of_fleet`: only tokens for all deployments may."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    role: Role
    is_of_fleet: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Write(HttpResource):
    """A command, as its class says."""

    command: type[Command]


@dataclass(frozen=True, slots=True)
class Read(HttpResource):
    """A read. `parameters`: what may stand after the `?`, or in the body of a POST; `has_etag`: it has a `version`.

    `afterwards`: makes the answer of what was found, when no transaction is open any more, and may wait for hosts.
    `view`: reads the same from the database, given what the path names; then a command line reads it over HTTP, too.
    """

    find: Callable[[Connection, Asked], Any]
    parameters: type[Parameters] = Parameters
    has_etag: bool = field(default=False, kw_only=True)
    afterwards: Callable[[Asked, reads.Document], reads.Document] | None = field(default=None, kw_only=True)
    view: Callable[..., Any] | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """The name of the operation: of a view the last word of its path, which no other read ends with."""
        return self.path.rpartition("/")[2].replace("-", "_") if self.view else self.find.__name__

    @property
    def source(self) -> Callable[..., Any]:
        """The function whose docstring says what the read shows, and whose annotation says the shape of that."""
        return self.view or self.find


@dataclass(frozen=True, slots=True)
class Forecast(HttpResource):
    """A plan of a command, asked for with the command's own body.

    It takes seconds of processor time, of which each token has so many.
    """

    command: type[Command]


_REVISION = f"{DEPLOYMENT}/revisions/{{revision}}"
_OPERATOR, _ADMIN, _VIEWER = Role.OPERATOR, Role.ADMIN, Role.VIEWER

WRITES: Sequence[Write] = tuple(
    Write(command.door.method, command.door.path, command.door.role, command, is_of_fleet=command.door.is_of_fleet)
    for command in COMMANDS.values()
)

PLANS: Sequence[Forecast] = tuple(
    Forecast("POST", f"{door.path}/plan", _VIEWER if issubclass(command, DeploymentCommand) else door.role, command)
    for command in COMMANDS.values()
    if (door := command.door).is_planned
)
"""What one deployment would do, who sees it may ask; what documents say is compared with what others may have."""


def _shown(path: str, view: Callable[..., Any], role: Role = _VIEWER, *, is_of_fleet: bool = False) -> Read:
    """The read of a view that needs nothing but what the path names, in its order: its annotation says its shape."""

    def find(connection: Connection, asked: Asked) -> Any:  # noqa: ANN401  (whatever the view makes)
        found = view(connection, *asked.path.values())
        return {"items": found} if isinstance(found, list) else found

    return Read("GET", path, role, find, view=view, is_of_fleet=is_of_fleet)


READS: Sequence[Read] = (
    Read("GET", "/v1/deployments", _VIEWER, reads.deployments, NamedPageParameters),
    Read("GET", DEPLOYMENT, _VIEWER, reads.deployment, has_etag=True),
    Read("GET", f"{DEPLOYMENT}/revisions", _VIEWER, revisions.revisions, NamedPageParameters),
    Read("GET", f"{DEPLOYMENT}/revisions/{{revision}}", _VIEWER, revisions.revision),
    Read(
        "GET",
        f"{DEPLOYMENT}/revisions/{{revision}}/difference",
        _VIEWER,
        revisions.revision_difference,
        DifferenceParameters,
    ),
    Read("GET", f"{DEPLOYMENT}/rollouts", _VIEWER, reads.rollouts, PageParameters),
    Read("GET", f"{DEPLOYMENT}/history", _VIEWER, reads.history, PageParameters),
    Read("GET", f"{DEPLOYMENT}/routes", _VIEWER, reads.routes, RouteParameters),
    Read("POST", f"{DEPLOYMENT}/logs", _OPERATOR, logs.logs, LogParameters, afterwards=logs.as_hosts_say),
    Read("POST", "/v1/apply/difference", _OPERATOR, applied.apply_difference, ApplyParameters),
    Read("POST", "/v1/apply/ahead", _OPERATOR, applied.apply_ahead, ApplyParameters),
    Read("GET", "/v1/routes", _VIEWER, logs.find_routes, AbbreviatedParameters),
    Read("GET", f"{DEPLOYMENT}/policy", _VIEWER, set_up.policy, has_etag=True),
    Read("GET", f"{DEPLOYMENT}/autoscaling", _VIEWER, set_up.autoscaling, has_etag=True),
    Read("GET", f"{DEPLOYMENT}/traffic", _VIEWER, set_up.traffic, has_etag=True),
    _shown(f"{DEPLOYMENT}/why", why_shown),
    Read("GET", f"{DEPLOYMENT}/offered", _VIEWER, decided.offered),
    Read("GET", "/v1/offered", _VIEWER, decided.fleet_offered),
    Read("GET", f"{DEPLOYMENT}/learned", _VIEWER, decided.learned),
    Read("GET", f"{DEPLOYMENT}/receipt", _VIEWER, decided.last_receipt),
    Read("GET", f"{DEPLOYMENT}/progress", _VIEWER, reads.progress, ProgressParameters),
    Read("GET", "/v1/rollouts/{rollout}", _VIEWER, reads.rollout),
    Read("GET", "/v1/rollouts/{rollout}/steps", _VIEWER, reads.steps, StepParameters),
    Read("GET", "/v1/rollouts/{rollout}/cycles", _VIEWER, reads.cycles, StepParameters),
    Read("GET", "/v1/rollouts/{rollout}/receipt", _VIEWER, decided.receipt),
    Read("GET", "/v1/traffic", _VIEWER, reads.traffic_table),
    Read("GET", "/v1/rollouts/{rollout}/plan", _VIEWER, reads.rollout_plan),
    _shown("/v1/hosts", all_hosts, is_of_fleet=True),
    _shown("/v1/proxies", list_proxies, is_of_fleet=True),
    _shown("/v1/subscriptions", all_subscriptions, _ADMIN, is_of_fleet=True),
    _shown("/v1/freezes", freezes_shown, is_of_fleet=True),
    _shown("/v1/groups", groups_shown, is_of_fleet=True),
    _shown("/v1/signs-of-life", signs_of_life),
)
