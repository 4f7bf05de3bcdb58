"""The resources: each path with its method, who may ask, and which command or read it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from psycopg import Connection

from api.people.asking.asked import (
    AbbreviatedParameters,
    Asked,
    CompareParameters,
    DifferenceParameters,
    EntranceParameters,
    LogParameters,
    NamedPageParameters,
    PageParameters,
    Parameters,
    PlanParameters,
    ProgressParameters,
    RouteParameters,
    SecretParameters,
    StepParameters,
)
from api.people.reads import decided, logs, revisions, secrets, set_up
from api.people.reads import deployments as reads
from domain.commands.base import Command
from domain.commands.deployment import (
    AddRevision,
    CreateDeployment,
    Destroy,
    Scale,
    SetAutoscalingRules,
    SetPolicy,
    SetTraffic,
)
from domain.commands.replicas import ForgetHost, PushMetric, ReportRoute
from domain.commands.rollout import Abort, ActivateRevision, Pause, Promote, Restart, Resume, Retry, Undo
from domain.commands.subscriptions import DeleteSubscription, SetSubscription
from domain.commands.windows import DeleteFreeze, DeleteGroup, SetFreeze, SetGroup
from domain.installation.tokens import Role

IN_HEADERS = {
    "request_id": "the header Idempotency-Key",
    "actor": "the name of the token",
    "expected_version": "the header If-Match",
    "schema_version": "the path, as /v1",
}
"""Fields of commands that no body has, and what says the same over HTTP."""

DEPLOYMENT = "/v1/deployments/{deployment}"


@dataclass(frozen=True, slots=True)
class Resource:
    """One method of one path. `role`: the least that may ask; `is_of_fleet`: only tokens for all deployments may."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    role: Role
    is_of_fleet: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Write(Resource):
    """A command. `example`: of its body; `status`: when it is done."""

    command: type[Command]
    example: Mapping[str, Any] = field(default_factory=dict)
    status: int = field(default=200, kw_only=True)


@dataclass(frozen=True, slots=True)
class Read(Resource):
    """A read. `parameters`: what may stand after the `?`, or in the body of a POST; `has_etag`: it has a `version`.

    `afterwards`: makes the answer of what was found, when no transaction is open any more, and may wait for hosts.
    """

    find: Callable[[Connection, Asked], reads.Document]
    parameters: type[Parameters] = Parameters
    has_etag: bool = field(default=False, kw_only=True)
    afterwards: Callable[[Asked, reads.Document], reads.Document] | None = field(default=None, kw_only=True)


_SPEC = {"command": ["python", "app.py"], "health_check": {"path": "/health"}}
_POLICY = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
_RULE = {"metric": "queue_length", "comparator": ">", "threshold": 100, "step": 1, "min_replicas": 2, "max_replicas": 9}
_FREEZE = {"cron": "0 18 * * FRI", "time_zone": "Europe/Berlin", "duration_seconds": 216_000}
_OPERATOR, _ADMIN, _VIEWER = Role.OPERATOR, Role.ADMIN, Role.VIEWER

WRITES: Sequence[Write] = (
    Write("POST", "/v1/deployments", _ADMIN, CreateDeployment, {"deployment": "web", "policy": _POLICY}, status=201),
    Write("POST", f"{DEPLOYMENT}/destroy", _ADMIN, Destroy),
    Write("POST", f"{DEPLOYMENT}/revisions", _OPERATOR, AddRevision, {"name": "v2", "spec": _SPEC}),
    Write("PUT", f"{DEPLOYMENT}/policy", _ADMIN, SetPolicy, {"policy": _POLICY}),
    Write("PUT", f"{DEPLOYMENT}/traffic", _ADMIN, SetTraffic, {"hosts": ["web.example.com"]}),
    Write("PUT", f"{DEPLOYMENT}/autoscaling", _ADMIN, SetAutoscalingRules, {"rules": [_RULE]}),
    Write("POST", f"{DEPLOYMENT}/metrics", _OPERATOR, PushMetric, {"metric": "queue_length", "value": 12.0}),
    Write("POST", f"{DEPLOYMENT}/activate", _OPERATOR, ActivateRevision, {"revision": "v2", "reason": "ticket 7"}),
    Write("POST", f"{DEPLOYMENT}/restart", _OPERATOR, Restart, {"reason": "a new certificate"}),
    Write("POST", f"{DEPLOYMENT}/pause", _OPERATOR, Pause, {"reason": "looking at the logs"}),
    Write("POST", f"{DEPLOYMENT}/resume", _OPERATOR, Resume),
    Write("POST", f"{DEPLOYMENT}/promote", _OPERATOR, Promote),
    Write("POST", f"{DEPLOYMENT}/abort", _OPERATOR, Abort, {"reason": "it is slow"}),
    Write("POST", f"{DEPLOYMENT}/undo", _OPERATOR, Undo),
    Write("POST", f"{DEPLOYMENT}/retry", _OPERATOR, Retry),
    Write("POST", f"{DEPLOYMENT}/scale", _OPERATOR, Scale, {"desired_replicas": 5}),
    Write("POST", "/v1/hosts/{host}/forget", _ADMIN, ForgetHost, is_of_fleet=True),
    Write("POST", "/v1/routes/{route_id}/report", _OPERATOR, ReportRoute, {"status": "healthy"}, is_of_fleet=True),
    Write("PUT", "/v1/subscriptions/{subscription}", _ADMIN, SetSubscription, {"webhook": "ci"}, is_of_fleet=True),
    Write("DELETE", "/v1/subscriptions/{subscription}", _ADMIN, DeleteSubscription, is_of_fleet=True),
    Write("PUT", "/v1/freezes/{freeze}", _ADMIN, SetFreeze, _FREEZE, is_of_fleet=True),
    Write("DELETE", "/v1/freezes/{freeze}", _ADMIN, DeleteFreeze, is_of_fleet=True),
    Write("PUT", "/v1/groups/{group}", _ADMIN, SetGroup, {"deployments": ["web"], "most_at_once": 1}, is_of_fleet=True),
    Write("DELETE", "/v1/groups/{group}", _ADMIN, DeleteGroup, is_of_fleet=True),
)

READS: Sequence[Read] = (
    Read("GET", "/v1/deployments", _VIEWER, reads.deployments, NamedPageParameters),
    Read("GET", DEPLOYMENT, _VIEWER, reads.deployment, has_etag=True),
    Read("GET", f"{DEPLOYMENT}/revisions", _VIEWER, revisions.revisions, NamedPageParameters),
    Read("GET", f"{DEPLOYMENT}/revisions/{{revision}}", _VIEWER, revisions.revision),
    Read("GET", f"{DEPLOYMENT}/revisions/{{revision}}/difference", _VIEWER, revisions.difference, DifferenceParameters),
    Read(
        "POST",
        f"{DEPLOYMENT}/revisions/{{revision}}/compare",
        _OPERATOR,
        revisions.compared_revision,
        CompareParameters,
    ),
    Read("POST", f"{DEPLOYMENT}/entrances/owners", _OPERATOR, reads.owners, EntranceParameters),
    Read("GET", f"{DEPLOYMENT}/freeze", _VIEWER, reads.freeze),
    Read("GET", f"{DEPLOYMENT}/rollouts", _VIEWER, reads.rollouts, PageParameters),
    Read("GET", f"{DEPLOYMENT}/history", _VIEWER, reads.history, PageParameters),
    Read("GET", f"{DEPLOYMENT}/routes", _VIEWER, reads.routes, RouteParameters),
    Read("POST", f"{DEPLOYMENT}/logs", _OPERATOR, logs.logs, LogParameters, afterwards=logs.as_hosts_say),
    Read(
        "POST",
        f"{DEPLOYMENT}/secrets",
        _OPERATOR,
        secrets.secrets,
        SecretParameters,
        afterwards=secrets.as_hosts_say,
    ),
    Read("GET", "/v1/routes", _VIEWER, logs.routes_like, AbbreviatedParameters),
    Read("GET", f"{DEPLOYMENT}/policy", _VIEWER, set_up.policy, has_etag=True),
    Read("GET", f"{DEPLOYMENT}/autoscaling", _VIEWER, set_up.autoscaling, has_etag=True),
    Read("GET", f"{DEPLOYMENT}/traffic", _VIEWER, set_up.traffic, has_etag=True),
    Read("GET", f"{DEPLOYMENT}/why", _VIEWER, decided.why),
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
