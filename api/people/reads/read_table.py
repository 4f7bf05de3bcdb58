"""The reads, a row for each: its path, the role it needs, and the function that answers it, imported when needed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from psycopg import Connection

from api.people.paths import DEPLOYMENT
from api.people.requests import Parameters, ReadRequest
from domain.installation.tokens import Role


@dataclass(frozen=True, slots=True)
class HttpResource:
    """One method of one path. `role`: the least that it needs; `is_of_fleet`: it needs a token for all deployments."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    role: Role
    is_of_fleet: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Read(HttpResource):
    """A read. `shows`: the function, by its module: a view of what the path names, or one of a `ReadRequest`.

    Its docstring is the summary, its annotation the shape of the answer. The annotation of `ReadRequest` has the
    parameters after the `?`, or of the body of a POST. `afterwards` completes the answer once no transaction is open,
    and may wait for hosts. `has_etag`: the answer has a `version`.
    """

    shows: str
    has_etag: bool = field(default=False, kw_only=True)
    afterwards: str = field(default="", kw_only=True)

    @property
    def source(self) -> Callable[..., Any]:
        return _function(self.shows)

    @property
    def parameters(self) -> type[Parameters]:
        """The parameters that the read takes in the query or the body."""
        return _parameters(self.source) or Parameters

    @property
    def name(self) -> str:
        """The name of the operation: of a view the last word of its path, which no other read ends with."""
        word = self.path.rpartition("/")[2].replace("-", "_")
        return self.source.__name__ if _parameters(self.source) else word

    def find(self, connection: Connection, request: ReadRequest[Any]) -> Any:  # noqa: ANN401  (whatever it shows)
        if _parameters(self.source):
            return self.source(connection, request)
        answer = self.source(connection, *request.path.values())
        return {"items": answer} if isinstance(answer, list) else answer

    def finish(self, request: ReadRequest[Any], answer: Any) -> Any:  # noqa: ANN401  (as above)
        return _function(self.afterwards)(request, answer) if self.afterwards else answer


@cache
def _function(path: str) -> Callable[..., Any]:
    module, _, name = path.rpartition(".")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


@cache
def _parameters(source: Callable[..., Any]) -> type[Parameters] | None:
    """The parameters that `ReadRequest` is annotated with; None of a view, which gets what the path names."""
    parameters: tuple[type[Parameters], ...] = get_args(get_type_hints(source).get("request"))
    return parameters[0] if parameters else None


_OPERATOR, _ADMIN, _VIEWER = Role.OPERATOR, Role.ADMIN, Role.VIEWER
_REVISION, _ROLLOUT = f"{DEPLOYMENT}/revisions/{{revision}}", "/v1/rollouts/{rollout}"
_HERE, _VIEWS = "api.people.reads", "db.views"
_REPLICAS = f"{_HERE}.replica_reads"

ON_THE_PAGE = frozenset(
    {
        *(
            "/v1/deployments",
            DEPLOYMENT,
            "/v1/offered",
            _ROLLOUT,
            "/v1/hosts",
            "/v1/hosts/{host}/drain",
            "/v1/freezes",
            "/v1/groups",
            "/v1/losing",
            "/v1/history",
            "/v1/templates",
        ),
        *(
            f"{DEPLOYMENT}/{part}"
            for part in (
                "history",
                "rollouts",
                "receipts",
                "routes",
                "revisions",
                "offered",
                "why",
                "policy",
                "autoscaling",
                "traffic",
                "requests",
            )
        ),
        _REVISION,
        f"{_REVISION}/difference",
        *(f"{_ROLLOUT}/{part}" for part in ("cycles", "plan", "evidence", "receipt")),
    }
)
"""The paths that the page reads: a login to the page gives access to no others."""

READS: Sequence[Read] = (
    Read("GET", "/v1/deployments", _VIEWER, f"{_HERE}.deployment_reads.deployments"),
    Read("GET", DEPLOYMENT, _VIEWER, f"{_HERE}.deployment_reads.deployment", has_etag=True),
    Read("GET", f"{DEPLOYMENT}/revisions", _VIEWER, f"{_HERE}.deployment_reads.revisions"),
    Read("GET", _REVISION, _VIEWER, f"{_HERE}.forecasts.revision"),
    Read("GET", f"{_REVISION}/difference", _VIEWER, f"{_HERE}.deployment_reads.revision_difference"),
    Read("GET", f"{DEPLOYMENT}/rollouts", _VIEWER, f"{_HERE}.deployment_reads.rollouts"),
    Read("GET", f"{DEPLOYMENT}/receipts", _VIEWER, f"{_HERE}.deployment_reads.receipts"),
    Read("GET", f"{DEPLOYMENT}/history", _VIEWER, f"{_HERE}.deployment_reads.history"),
    Read("GET", f"{DEPLOYMENT}/routes", _VIEWER, f"{_HERE}.deployment_reads.routes"),
    Read("POST", f"{DEPLOYMENT}/logs", _OPERATOR, f"{_REPLICAS}.logs", afterwards=f"{_REPLICAS}.as_hosts_say"),
    Read("POST", f"{DEPLOYMENT}/probe", _OPERATOR, f"{_REPLICAS}.probe", afterwards=f"{_REPLICAS}.as_hosts_find"),
    Read("POST", "/v1/apply/difference", _OPERATOR, f"{_HERE}.forecasts.apply_difference"),
    Read("POST", "/v1/apply/ahead", _OPERATOR, f"{_HERE}.forecasts.apply_ahead"),
    Read("GET", "/v1/routes", _VIEWER, f"{_HERE}.deployment_reads.find_routes"),
    Read("GET", f"{DEPLOYMENT}/policy", _VIEWER, f"{_HERE}.rollout_reads.policy", has_etag=True),
    Read("GET", f"{DEPLOYMENT}/autoscaling", _VIEWER, f"{_HERE}.rollout_reads.autoscaling", has_etag=True),
    Read("GET", f"{DEPLOYMENT}/traffic", _VIEWER, f"{_HERE}.rollout_reads.traffic", has_etag=True),
    Read("GET", f"{DEPLOYMENT}/requests", _VIEWER, f"{_HERE}.deployment_reads.requests"),
    Read("GET", "/v1/history", _VIEWER, f"{_HERE}.deployment_reads.lately"),
    Read("GET", "/v1/losing", _VIEWER, f"{_HERE}.deployment_reads.losing"),
    Read("GET", f"{DEPLOYMENT}/why", _VIEWER, "db.audit.explanations.why_shown"),
    Read("GET", f"{DEPLOYMENT}/offered", _VIEWER, f"{_HERE}.forecasts.offered"),
    Read("GET", "/v1/offered", _VIEWER, f"{_HERE}.forecasts.fleet_offered"),
    Read("GET", "/v1/templates", _ADMIN, f"{_HERE}.forecasts.templates"),
    Read("GET", f"{DEPLOYMENT}/learned", _VIEWER, f"{_HERE}.rollout_reads.learned"),
    Read("GET", f"{DEPLOYMENT}/receipt", _VIEWER, f"{_HERE}.rollout_reads.last_receipt"),
    Read("GET", f"{DEPLOYMENT}/progress", _VIEWER, f"{_HERE}.deployment_reads.progress"),
    Read("GET", _ROLLOUT, _VIEWER, f"{_HERE}.rollout_reads.rollout"),
    Read("GET", f"{_ROLLOUT}/steps", _VIEWER, f"{_HERE}.rollout_reads.steps"),
    Read("GET", f"{_ROLLOUT}/cycles", _VIEWER, f"{_HERE}.rollout_reads.cycles"),
    Read("GET", f"{_ROLLOUT}/receipt", _VIEWER, f"{_HERE}.rollout_reads.receipt"),
    Read("GET", f"{_ROLLOUT}/plan", _VIEWER, f"{_HERE}.rollout_reads.rollout_plan"),
    Read("GET", f"{_ROLLOUT}/evidence", _VIEWER, f"{_HERE}.rollout_reads.evidence"),
    Read("GET", "/v1/traffic", _VIEWER, f"{_HERE}.rollout_reads.traffic_table"),
    Read("GET", "/v1/hosts", _VIEWER, f"{_VIEWS}.fleet_views.all_hosts", is_of_fleet=True),
    Read("GET", "/v1/unplaced", _VIEWER, f"{_VIEWS}.unplaced.unplaced", is_of_fleet=True),
    Read("GET", "/v1/hosts/{host}/drain", _VIEWER, f"{_HERE}.forecasts.drain_ahead", is_of_fleet=True),
    Read("GET", "/v1/proxies", _VIEWER, "db.proxies.acks.list_proxies", is_of_fleet=True),
    Read(
        "GET",
        "/v1/subscriptions",
        _ADMIN,
        f"{_VIEWS}.fleet_settings.all_subscriptions",
        afterwards=f"{_HERE}.rollout_reads.with_queues",
        is_of_fleet=True,
    ),
    Read("GET", "/v1/freezes", _VIEWER, f"{_VIEWS}.fleet_settings.freezes_shown", is_of_fleet=True),
    Read("GET", "/v1/groups", _VIEWER, f"{_VIEWS}.fleet_settings.groups_shown", is_of_fleet=True),
    Read("GET", "/v1/signs-of-life", _VIEWER, f"{_VIEWS}.fleet_views.signs_of_life"),
)
BY_PATH: Mapping[str, Read] = {entry.path: entry for entry in READS}


@dataclass(frozen=True, slots=True)
class Shape:
    """`list_kind`: whether it is a whole list of views, or a page of one; `more`: further fields and what they are."""

    views: tuple[type, ...]
    list_kind: Literal["", "whole", "page"] = ""
    more: Mapping[str, object] = field(default_factory=dict)
    extras: Mapping[str, object] = field(default_factory=dict)


def shape_of(function: Callable[..., Any]) -> Shape:
    """The shape in the annotation of a read: a view, a list of views, or a document with its shape."""
    kind = get_type_hints(function, include_extras=True)["return"]
    match get_origin(kind), get_args(kind):
        case found, (_, Shape() as shape) if found is Annotated:
            return shape
        case found, views if found is list:
            return Shape(views, "whole")
    return Shape((kind,))
