"""The routing table: the host names and path prefixes of each deployment, and the replicas that take its requests.

It is derived from a snapshot of Postgres; services that have not changed are kept.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import ip_address
from uuid import UUID

from domain.model.states import RouteStatus
from domain.traffic.caller_match import Chosen
from domain.traffic.capacity import is_preview, sides, with_a_share
from domain.traffic.entrances import HOST_NAME, PREVIEW_PREFIX, is_of_the_page
from domain.traffic.maintenance import Maintenance
from domain.traffic.snapshot import (
    Canary,
    DeploymentInTraffic,
    Entrance,
    EntranceKind,
    RequestRules,
    RouteInTraffic,
    TrafficSnapshot,
)
from domain.traffic.tls_material import ANY_HOST, Secured
from domain.traffic.wire import ReplicaWire
from traffic.edge_settings import NOTHING_IN_FRONT, InFront

_PREFIX = re.compile(r"/([A-Za-z0-9._~!$&'()*+,;=:@%-]+/)*")


@dataclass(frozen=True, slots=True)
class Prefix:
    """A path prefix that begins and ends with a slash, and whether the replicas see it."""

    value: str
    strip: bool


@dataclass(frozen=True, slots=True)
class DeploymentEntrances:
    """The entrances of a deployment. No host name and no prefix belongs to two deployments."""

    hosts: tuple[str, ...]
    preview_hosts: tuple[str, ...]
    prefixes: tuple[Prefix, ...]


def ways_to(deployments: Sequence[DeploymentInTraffic], faults: list[str]) -> list[DeploymentEntrances]:
    """The entrances of each deployment. One that is invalid or belongs to another is left out, and becomes a fault."""
    hosts = _Owners("host name", faults)
    prefixes = _Owners("path prefix", faults)
    claims = [(tuple(_hosts(each, hosts, faults)), tuple(_prefixes(each, prefixes, faults))) for each in deployments]
    ways = []
    for deployment, (its_hosts, its_prefixes) in zip(deployments, claims, strict=True):
        previews = [f"{PREVIEW_PREFIX}{host}" for host in its_hosts if not host.startswith(ANY_HOST)]
        # an exact name comes first: all host names were taken before any of a preview
        free = tuple(host for host in previews if hosts.take_if_free(host, deployment.name))
        ways.append(DeploymentEntrances(its_hosts, free, its_prefixes))
    return ways


@dataclass(frozen=True, slots=True)
class _Owners:
    """The owner of each host name or path prefix; a second deployment with it is a fault."""

    what: str
    faults: list[str]
    owner_of: dict[str, str] = field(default_factory=dict)

    def take(self, value: str, deployment: str) -> bool:
        owner = self.owner_of.setdefault(value, deployment)
        if owner != deployment:
            self.faults.append(f"{deployment}: {self.what} {value!r} belongs to {owner} already, so it is left out")
        return owner == deployment

    def take_if_free(self, value: str, deployment: str) -> bool:
        free = value not in self.owner_of
        return free and self.take(value, deployment)


def _hosts(deployment: DeploymentInTraffic, owners: _Owners, faults: list[str]) -> Iterator[str]:
    for value in dict.fromkeys(entrance.value.lower() for entrance in _of_kind(deployment, EntranceKind.HOST)):
        if not HOST_NAME.fullmatch(value):
            faults.append(f"{deployment.name}: {value!r} is no host name, so it is left out")
        elif is_of_the_page(value):
            faults.append(f"{deployment.name}: host name {value!r} is the page's alone, so it is left out")
        elif owners.take(value, deployment.name):
            yield value


def _prefixes(deployment: DeploymentInTraffic, owners: _Owners, faults: list[str]) -> Iterator[Prefix]:
    strips = {_slashed(entrance.value): entrance.strip_prefix for entrance in _of_kind(deployment, EntranceKind.PREFIX)}
    for value, strip in strips.items():
        if not _PREFIX.fullmatch(value):
            faults.append(f"{deployment.name}: {value!r} is no path prefix, so it is left out")
        elif owners.take(value, deployment.name):
            yield Prefix(value, strip)


def _of_kind(deployment: DeploymentInTraffic, kind: EntranceKind) -> Iterator[Entrance]:
    return (entrance for entrance in deployment.entrances if entrance.kind is kind)


def _slashed(value: str) -> str:
    return f"/{value.strip('/')}/" if value.strip("/") else "/"


@dataclass(frozen=True, slots=True)
class Upstream:
    """A replica that takes requests. `ip`: an IPv4 or IPv6 address. `weight`: 1..100, its share against the others'.

    `seat`: the place by which sticky callers find it; None: it has none. `wire`: the name of its protocol.

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
    """A deployment, as proxies know it.

    `preview`: healthy replicas of the revision that is being rolled out, not in traffic yet. `canary`: those that get
    `weight` of 10,000 requests; where none should get any, those that get all, for proxies that hold an older weight.
    None: there is no canary. `sticky`: the rollout by whose cookie callers stay on their side. `mirrored`: of how many
    of 10,000 requests that only read the canary gets copies. `draining`: replicas that get no new request, and of which
    proxies still tell how many answers are under way. `baseline`: those that get as many requests as the canary, or
    their stand-ins, as with `canary`; `baseline_weight`: their share of 10,000.
    `secured`: how it is reached by TLS; None: not at all. `maintenance`: None: callers reach the replicas.
    `wire`: the protocol of replicas while there is none; `wires`: that one and those of its replicas, by name.
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
    def public(self) -> "Service":
        """The service for people, without secrets."""
        return replace(self, secured=None, wires={}, maintenance=self.maintenance and self.maintenance.public_part)

    @property
    def serving(self) -> frozenset[Upstream]:
        """The replicas that take requests, whatever their share."""
        return frozenset((*self.live, *(self.canary or ()), *(self.baseline or ())))

    @property
    def speaks_tls(self) -> bool:
        """Whether a replica that callers may reach speaks TLS."""
        return any(self.wires[upstream.wire].tls for upstream in (*self.serving, *self.preview))

    @property
    def asks_callers(self) -> bool:
        """Whether callers must show a certificate of their own."""
        return self.rules.tls is not None and self.rules.tls.callers_ca is not None

    @property
    def is_held(self) -> bool:
        """Whether its requests wait, since none of its replicas takes any."""
        return self.rules.hold_seconds is not None and not self.serving


@dataclass(frozen=True, slots=True)
class TlsDoor:
    """The port where proxies listen for TLS, and the port at which callers find it from outside.

    `in_front`: what is in front of it, and of the port without TLS.
    """

    host: str
    port: int
    public_port: int
    in_front: InFront = NOTHING_IN_FRONT


@dataclass(frozen=True, slots=True)
class TrafficTable:
    """All that proxies may know. `seen`: the snapshot of Postgres behind it.

    `door`: the port where they listen for TLS; None: there is none.

    No host name and no prefix occurs twice, since a proxy would then refuse the whole table. `faults`: what had
    to be left out, a sentence each.
    """

    seen: str
    services: tuple[Service, ...]
    faults: tuple[str, ...] = ()
    door: TlsDoor | None = None


_LEAST_WEIGHT, _MOST_WEIGHT = 1, 100


def derive_table(
    snapshot: TrafficSnapshot, before: tuple[TrafficSnapshot, TrafficTable] | None = None, door: TlsDoor | None = None
) -> TrafficTable:
    """The table of a snapshot. `before`: an older one and its table, whose unchanged services are kept."""
    if before is not None and not before[1].faults and not snapshot.faults and _is_reached_alike(snapshot, before[0]):
        return _with_other_replicas(snapshot, *before)
    faults = list(snapshot.faults)
    ways = ways_to(snapshot.deployments, faults)
    services = tuple(_service(*pair, faults) for pair in zip(snapshot.deployments, ways, strict=True))
    return TrafficTable(snapshot.seen, services, tuple(dict.fromkeys(faults)), door)


def _is_reached_alike(snapshot: TrafficSnapshot, before: TrafficSnapshot) -> bool:
    """Whether both have the same deployments, with the same host names and paths."""
    return len(snapshot.deployments) == len(before.deployments) and all(
        new is old or (new.name == old.name and new.entrances == old.entrances)
        for new, old in zip(snapshot.deployments, before.deployments, strict=True)
    )


def _with_other_replicas(snapshot: TrafficSnapshot, old: TrafficSnapshot, table: TrafficTable) -> TrafficTable:
    """Renew only the replicas: the entrances are as they were, and nothing was left out."""
    if snapshot.deployments is old.deployments:
        return replace(table, seen=snapshot.seen)
    faults: list[str] = []
    services = tuple(
        service
        if deployment is was or deployment == was
        else _service(deployment, DeploymentEntrances(service.hosts, service.preview_hosts, service.prefixes), faults)
        for deployment, was, service in zip(snapshot.deployments, old.deployments, table.services, strict=True)
    )
    return TrafficTable(snapshot.seen, services, tuple(dict.fromkeys(faults)), table.door)


def _service(deployment: DeploymentInTraffic, ways: DeploymentEntrances, faults: list[str]) -> Service:
    live, canary, baseline, weight, beside_weight = sides(deployment)
    preview = [route for route in deployment.routes if deployment.rules.preview and is_preview(route)]
    leaving = [route for route in deployment.routes if route.status is RouteStatus.TERMINATING]
    upstreams, share, baseline_upstreams, previewed, draining = (
        tuple(_upstreams(deployment.name, routes, faults)) for routes in (live, canary, baseline, preview, leaving)
    )
    share, baseline_upstreams = share if canary else upstreams, baseline_upstreams if baseline else upstreams
    used = {(upstream.ip, upstream.port) for upstream in (*upstreams, *share, *baseline_upstreams, *previewed)}
    shares = deployment.canary or Canary()
    return Service(
        name=deployment.name,
        hosts=ways.hosts,
        preview_hosts=ways.preview_hosts,
        prefixes=ways.prefixes,
        rules=deployment.rules,
        live=upstreams,
        preview=previewed,
        canary=share if deployment.canary else None,
        weight=weight,
        sticky=shares.sticky,
        mirrored=shares.mirrored if canary else 0,
        # where a new replica has the address of one that is gone, the gone one is not asked any more
        draining=tuple(upstream for upstream in draining if (upstream.ip, upstream.port) not in used),
        baseline=baseline_upstreams if shares.baseline is not None else None,
        baseline_weight=beside_weight,
        secured=deployment.secured,
        maintenance=deployment.maintenance,
        chosen=shares.chosen if canary and weight else None,
        wire=deployment.wire,
        wires=deployment.wires,
    )


def _upstreams(deployment: str, routes: list[RouteInTraffic], faults: list[str]) -> Iterator[Upstream]:
    for route in with_a_share(routes):
        try:
            ip, port = read_address(route.address)
        except ValueError:
            faults.append(
                f"{deployment}: replica {route.id} is at {route.address!r}, which is not ip:port, so it is left out"
            )
            continue
        weight = max(_LEAST_WEIGHT, min(_MOST_WEIGHT, round(route.ratio * _MOST_WEIGHT)))
        who = (route.id, route.revision, route.revision_id)
        yield Upstream(*who, ip, port, route.status, weight, route.seat, route.wire)


@lru_cache(maxsize=65_536)
def read_address(address: str) -> tuple[str, int]:
    """The IP address and port of "10.0.0.1:80" or "[::1]:80". Raises ValueError for anything else, names included."""
    host, _, port = address.rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() else 0
    if not 0 < number < 65536:  # noqa: PLR2004  (the ports there are)
        raise ValueError(address)
    return str(ip_address(host.removeprefix("[").removesuffix("]"))), number
