"""The snapshot for proxies: deployments, their entrances, and the replicas that may take their requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from domain.model.states import RouteStatus, TrafficStatus
from domain.traffic.caller_match import Chosen, Sticky, known_sticky, stored_sticky
from domain.traffic.maintenance import Maintenance
from domain.traffic.tls import UPSTREAM_TLS, TlsSettings, UpstreamTls, known_tls, known_upstream, stored_tls
from domain.traffic.tls_material import Secured
from domain.traffic.wire import Protocol, ReplicaWire, Wire, known_protocol


class EntranceKind(StrEnum):
    """The kind of an entrance: requests belong to a deployment by their host, or by the beginning of their path."""

    HOST = "host"
    PREFIX = "prefix"


@dataclass(frozen=True, slots=True)
class Entrance:
    """A host name, or a path prefix ("/web/"), which the proxy removes before it passes a request on."""

    kind: EntranceKind
    value: str
    strip_prefix: bool = True


@dataclass(frozen=True, slots=True)
class RequestRules:
    """The rules for a deployment's requests, which proxies follow. `timeout_seconds`: None for no limit.

    `hedge_after_seconds`: the time without a first byte after which a repeatable request is sent to a second replica
    too, and the first answer counts; None for never. `preview`: whether the revision of a rollout can be reached before
    it gets traffic. `idle_timeout_seconds`: the silence in both directions after which a request is cut; None for
    never. `protocol`: the protocol of replicas. `tls`: None: it is reached in clear text alone. `hold_seconds`: the
    time that a request waits while no replica serves; None: it is refused at once. `hold_callers`: the most requests
    that wait at a proxy. `slow_start_seconds`: the time in which the share of a new replica grows to a full one; None:
    it is full at once. `max_body_bytes`: the largest body of a request; None: any. `max_requests_per_second`: by its
    host names, at each proxy; None: any number. `sticky`: the header or cookie by which a caller stays with a replica;
    None: callers do not. `upstream_tls`: the expected certificate of replicas that speak TLS; None: they speak clear
    text.
    """

    timeout_seconds: float | None = None
    hedge_after_seconds: float | None = 5.0
    preview: bool = True
    idle_timeout_seconds: float | None = 3600.0
    protocol: Protocol = Protocol.HTTP1
    tls: TlsSettings | None = None
    hold_seconds: float | None = None
    hold_callers: int = 1000
    slow_start_seconds: float | None = None
    max_body_bytes: int | None = None
    max_requests_per_second: int | None = None
    sticky: Sticky | None = None
    upstream_tls: UpstreamTls | None = None
    pages: tuple[tuple[str, str], ...] = ()

    @property
    def wire(self) -> Wire:
        """The rules for speaking to replicas: each revision keeps its own."""
        return Wire(self.protocol, self.upstream_tls)

    def with_wire(self, wire: Wire) -> "RequestRules":
        return replace(self, protocol=wire.protocol, upstream_tls=wire.upstream_tls)


USUAL = RequestRules()
"""The rules of a new deployment."""
_STORED_TOGETHER = ("hold_seconds", "hold_callers", "slow_start_seconds", "max_body_bytes", "max_requests_per_second")
"""The plain numbers among the rules without a column of their own."""


def stored_together(rules: RequestRules) -> dict[str, Any]:
    """The rules that share a column, where they differ from those of a new deployment."""
    values = {name: getattr(rules, name) for name in _STORED_TOGETHER}
    differing = {name: value for name, value in values.items() if value != getattr(USUAL, name)}
    tls = {} if rules.tls is None else {"tls": stored_tls(rules.tls)}
    sticky = {} if rules.sticky is None else {"sticky": stored_sticky(rules.sticky)}
    upstream = rules.upstream_tls and UPSTREAM_TLS.dump_python(rules.upstream_tls, mode="json", exclude_defaults=True)
    pages = {"pages": dict(rules.pages)} if rules.pages else {}
    return differing | tls | sticky | pages | ({} if upstream is None else {"upstream_tls": upstream})


def known_rules(  # noqa: PLR0913 -- the columns of Postgres, in its order
    timeout: float | None,
    hedge_after: float | None,
    idle_timeout: float | None,
    protocol: str,
    together: Mapping[str, Any],
    *,
    preview: bool,
) -> RequestRules:
    """The stored rules; those that only a newer release knows are left out."""
    values = {name: together[name] for name in _STORED_TOGETHER if name in together}
    tls, sticky = known_tls(together.get("tls")), known_sticky(together.get("sticky"))
    spoken, upstream = known_protocol(protocol), known_upstream(together.get("upstream_tls"))
    values |= {"sticky": sticky, "upstream_tls": upstream, "pages": tuple(together.get("pages", {}).items())}
    return RequestRules(timeout, hedge_after, preview, idle_timeout, spoken, tls, **values)


@dataclass(frozen=True, slots=True)
class RouteInTraffic:
    """A route whose replica runs and was not asked to end yet.

    `ratio`: its share of requests against the others' (0..1).
    `is_candidate`: of the revision that its deployment is rolling out to. A parked one waits for a way back.
    `is_current`: of the revision that is to be replaced, or that runs while there is no rollout.
    `seat`: the place by which sticky callers find it; None: it has none (yet). `wire`: the name of its protocol.
    """

    id: UUID
    revision: str
    revision_id: UUID
    address: str
    status: RouteStatus
    traffic: TrafficStatus
    ratio: float
    is_candidate: bool
    is_parked: bool
    is_current: bool = True
    seat: int | None = None
    wire: str = ""


@dataclass(frozen=True, slots=True)
class Canary:
    """The sharing of requests with a canary that runs, or ran just now.

    `weight`: how many of 10,000 requests the candidates get; None: all replicas share them. `sticky`: the id of
    the rollout by whose cookie callers stay on their side. `mirrored`: the part of 10,000 reading requests that the
    candidates get copies of. `baseline`: the routes of its fresh baseline, which get as many as the candidates; None:
    it has, and just now had, none. `floor`: as many as serve at least; what another canary left helps out below it.
    `chosen`: the callers who go to the candidates whatever the weight is, as long as there is one.
    """

    weight: int | None = None
    sticky: UUID | None = None
    mirrored: int = 0
    baseline: frozenset[UUID] | None = None
    floor: int = 0
    chosen: Chosen | None = None


@dataclass(frozen=True, slots=True)
class DeploymentInTraffic:
    """A deployment that is not destroyed, with its routes in id order.

    `secured`: its material for TLS; None where its rules want none. `maintenance`: None: callers reach its replicas.
    `wire`: the protocol of replicas while there is none; `wires`: that one and those of its routes, by name.
    """

    name: str
    entrances: tuple[Entrance, ...]
    rules: RequestRules
    routes: tuple[RouteInTraffic, ...]
    canary: Canary | None = None
    secured: Secured | None = None
    maintenance: Maintenance | None = None
    wire: str = ""
    wires: Mapping[str, ReplicaWire] = field(default_factory=lambda: {"": ReplicaWire()})


@dataclass(frozen=True, slots=True)
class TrafficSnapshot:
    """All that proxies may know, read in one snapshot of Postgres. `seen`: that snapshot (`pg_snapshot`, as text).

    A route that a transaction took out of traffic is missing exactly when `pg_visible_in_snapshot(its id, seen)`.
    `faults`: a sentence for each thing that is missing because it could not be read.
    """

    seen: str
    deployments: tuple[DeploymentInTraffic, ...]
    faults: tuple[str, ...] = ()
