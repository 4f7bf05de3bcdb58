"""The resources: each path with its method, who may ask, and which command or read it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

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
    PlanParameters,
    ProgressParameters,
    RouteParameters,
    StepParameters,
)
from api.people.reads import applied, decided, logs, revisions, set_up
from api.people.reads import deployments as reads
from domain.commands.base import DEPLOYMENT, Command
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
    """

    find: Callable[[Connection, Asked], reads.Document]
    parameters: type[Parameters] = Parameters
    has_etag: bool = field(default=False, kw_only=True)
    afterwards: Callable[[Asked, reads.Document], reads.Document] | None = field(default=None, kw_only=True)


_OPERATOR, _ADMIN, _VIEWER = Role.OPERATOR, Role.ADMIN, Role.VIEWER

WRITES: Sequence[Write] = tuple(
    Write(command.door.method, command.door.path, command.door.role, command, is_of_fleet=command.door.is_of_fleet)
    for command in COMMANDS.values()
)

READS: Sequence[Read] = (
    Read("GET", "/v1/deployments", _VIEWER, reads.deployments, NamedPageParameters),
    Read("GET", DEPLOYMENT, _VIEWER, reads.deployment, has_etag=True),
    Read("GET", f"{DEPLOYMENT}/revisions", _VIEWER, revisions.revisions, NamedPageParameters),
    Read("GET", f"{DEPLOYMENT}/revisions/{{revision}}", _VIEWER, revisions.revision),
    Read("GET", f"{DEPLOYMENT}/revisions/{{revision}}/difference", _VIEWER, revisions.difference, DifferenceParameters),
    Read("GET", f"{DEPLOYMENT}/rollouts", _VIEWER, reads.rollouts, PageParameters),
    Read("GET", f"{DEPLOYMENT}/history", _VIEWER, reads.history, PageParameters),
    Read("GET", f"{DEPLOYMENT}/routes", _VIEWER, reads.routes, RouteParameters),
    Read("POST", f"{DEPLOYMENT}/logs", _OPERATOR, logs.logs, LogParameters, afterwards=logs.as_hosts_say),
    Read("POST", "/v1/apply/difference", _OPERATOR, applied.difference, ApplyParameters),
    Read("POST", "/v1/apply/ahead", _OPERATOR, applied.ahead, ApplyParameters),
    Read("GET", "/v1/routes", _VIEWER, logs.routes_like, AbbreviatedParameters),
    Read("GET", f"{DEPLOYMENT}/policy", _VIEWER, set_up.policy, has_etag=True),
    Read("GET", f"{DEPLOYMENT}/autoscaling", _VIEWER, set_up.autoscaling, has_etag=True),
    Read("GET", f"{DEPLOYMENT}/traffic", _VIEWER, set_up.traffic, has_etag=True),
    Read("GET", f"{DEPLOYMENT}/why", _VIEWER, decided.why),
    Read("GET", f"{DEPLOYMENT}/offered", _VIEWER, decided.offered),
    Read("GET", f"{DEPLOYMENT}/plan", _VIEWER, decided.plan, PlanParameters),
    Read("GET", f"{DEPLOYMENT}/learned", _VIEWER, decided.learned),
    Read("GET", f"{DEPLOYMENT}/receipt", _VIEWER, decided.last_receipt),
    Read("GET", f"{DEPLOYMENT}/progress", _VIEWER, reads.progress, ProgressParameters),
    Read("GET", "/v1/rollouts/{rollout}", _VIEWER, reads.rollout),
    Read("GET", "/v1/rollouts/{rollout}/steps", _VIEWER, reads.steps, StepParameters),
    Read("GET", "/v1/rollouts/{rollout}/cycles", _VIEWER, reads.cycles, StepParameters),
    Read("GET", "/v1/rollouts/{rollout}/receipt", _VIEWER, decided.receipt),
    Read("GET", "/v1/traffic", _VIEWER, reads.table),
    Read("GET", "/v1/rollouts/{rollout}/plan", _VIEWER, reads.against),
    Read("GET", "/v1/hosts", _VIEWER, reads.hosts, is_of_fleet=True),
    Read("GET", "/v1/proxies", _VIEWER, reads.proxies, is_of_fleet=True),
    Read("GET", "/v1/subscriptions", _ADMIN, reads.subscriptions, is_of_fleet=True),
    Read("GET", "/v1/freezes", _VIEWER, reads.freezes, is_of_fleet=True),
    Read("GET", "/v1/groups", _VIEWER, reads.groups, is_of_fleet=True),
    Read("GET", "/v1/signs-of-life", _VIEWER, reads.signs),
)
