"""The table: where each deployment is reached, and which replicas take its requests, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from domain.installation.in_front import NOTHING_IN_FRONT, InFront
from domain.model.states import RouteStatus
from domain.traffic.caller_match import Chosen
from domain.traffic.maintenance import Maintenance
from domain.traffic.snapshot import RequestRules
from domain.traffic.tls_material import Secured
from domain.traffic.wire import ReplicaWire
from traffic.entrance_map import Prefix


@dataclass(frozen=True, slots=True)
class Upstream:
    """One replica that takes requests. `ip`: an IPv4 or IPv6 address. `weight`: 1..100, its share against the others'.

    `seat`: where callers who stay find it; None: it has none. `wire`: the name of how it is spoken to.

    `status` is a hint: a proxy prefers healthy ones, and uses the others when there is nothing better.
    """

    route_id: UUID
    revision: str
    revision_id: UUID
    ip: str
    port: int
    status: RouteStatus
    weight: int
    seat: int | None = None
    wire: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """One deployment, as proxies know it.

    `preview`: healthy replicas of the revision that is being rolled out, not in traffic yet. `canary`: those that get
    `weight` of 10,000 requests; where none should get any, those that get all, for proxies that hold an older weight.
    None: there is no canary. `sticky`: the rollout by whose cookie callers stay on their side. `mirrored`: of how many
    of 10,000 requests that only read the canary gets copies. `draining`: replicas that get no new request, and of which
    proxies still tell how many answers are under way. `baseline`: those that get as many requests as the canary, or
    who stands in for them, as with `canary`; `baseline_weight`: so many of 10,000.
    `secured`: how it is reached by TLS; None: not at all. `maintenance`: None: callers reach the replicas.
    `wire`: how replicas are spoken to where there is none; `wires`: what that and the wires of its replicas stand for.
    `chosen`: the callers who get to the canary whatever its weight is.
    """

    name: str
    hosts: tuple[str, ...]
    preview_hosts: tuple[str, ...]
    prefixes: tuple[Prefix, ...]
    rules: RequestRules
    live: tuple[Upstream, ...]
    preview: tuple[Upstream, ...]
    canary: tuple[Upstream, ...] | None = None
    weight: int = 0
    sticky: UUID | None = None
    mirrored: int = 0
    draining: tuple[Upstream, ...] = ()
    baseline: tuple[Upstream, ...] | None = None
    baseline_weight: int = 0
    secured: Secured | None = None
    maintenance: Maintenance | None = None
    chosen: Chosen | None = None
    wire: str = ""
    wires: Mapping[str, ReplicaWire] = field(default_factory=lambda: {"": ReplicaWire()})

    @property
    def shown(self) -> "Service":
        """As people may see it, without what is secret."""
        return replace(self, secured=None, wires={}, maintenance=self.maintenance and self.maintenance.shown)

    @property
    def serving(self) -> frozenset[Upstream]:
        """The replicas that take requests, whichever share of them."""
        return frozenset((*self.live, *(self.canary or ()), *(self.baseline or ())))

    @property
    def speaks_tls(self) -> bool:
        """Whether a replica that callers may reach is asked by TLS."""
        return any(self.wires[upstream.wire].tls for upstream in (*self.serving, *self.preview))

    @property
    def asks_callers(self) -> bool:
        """Whether callers must show a certificate of their own."""
        return self.rules.tls is not None and self.rules.tls.callers_ca is not None

    @property
    def is_held(self) -> bool:
        """Whether its requests wait, as none of its replicas takes any."""
        return self.rules.hold_seconds is not None and not self.serving


@dataclass(frozen=True, slots=True)
class TlsDoor:
    """Where proxies listen for TLS, and the port at which callers find that from outside.

    `in_front`: what stands there, as it does in front of the port without TLS.
    """

    host: str
    port: int
    public_port: int
    in_front: InFront = NOTHING_IN_FRONT


@dataclass(frozen=True, slots=True)
class TrafficTable:
    """All that proxies may know. `seen`: the snapshot of Postgres that it was read in.

    `door`: where they listen for TLS; None: nowhere.

    No host name and no prefix occurs twice, which a proxy would answer by refusing the whole table. `faults`: what had
    to be left out, a sentence each.
    """

    seen: str
    services: tuple[Service, ...]
    faults: tuple[str, ...] = ()
    door: TlsDoor | None = None
