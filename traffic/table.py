"""The table: where each deployment is reached and which replicas take its requests, derived from one snapshot."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.model import RouteStatus
from domain.traffic.entrances import HOST_NAME, PREVIEW_PREFIX
from domain.traffic.published import (
    DeploymentInTraffic,
    Entrance,
    EntranceKind,
    RequestRules,
    RouteInTraffic,
    TrafficSnapshot,
)
from domain.traffic.shares import is_preview, sides, with_a_share
from traffic.addresses import read_address

ANY_HOST = "*."
"""What a host name begins with that stands for every name below it. There is no preview by such a name."""

_PREFIX = re.compile(r"/([A-Za-z0-9._~!$&'()*+,;=:@%-]+/)*")
_LEAST_WEIGHT, _MOST_WEIGHT = 1, 100


@dataclass(frozen=True, slots=True)
class Upstream:
    """One replica that takes requests. `ip`: an IPv4 or IPv6 address. `weight`: 1..100, its share against the others'.

    `status` is a hint: a proxy prefers healthy ones, and uses the others when there is nothing better.
    """

    route_id: UUID
    revision: str
    revision_id: UUID
    ip: str
    port: int
    status: RouteStatus
    weight: int


@dataclass(frozen=True, slots=True)
class Prefix:
    """A path prefix that begins and ends with a slash, and whether the replicas see it."""

    value: str
    strip: bool


@dataclass(frozen=True, slots=True)
class Service:
    """One deployment, as proxies know it.

    `preview`: healthy replicas of the revision that is being rolled out, not in traffic yet. `canary`: those that get
    `weight` of 10,000 requests; where none should get any, those that get all, for proxies that hold an older weight.
    None: there is no canary. `sticky`: the rollout by whose cookie callers stay on their side. `mirrored`: of how many
    of 10,000 requests that only read the canary gets copies. `draining`: replicas that get no new request, and of which
    proxies still tell how many answers are under way. `baseline`: those that get as many requests as the canary, or
    who stands in for them, as with `canary`; `baseline_weight`: so many of 10,000.
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


@dataclass(frozen=True, slots=True)
class TrafficTable:
    """All that proxies may know. `seen`: the snapshot of Postgres that it was read in.

    No host name and no prefix occurs twice, which a proxy would answer by refusing the whole table. `faults`: what had
    to be left out, a sentence each.
    """

    seen: str
    services: tuple[Service, ...]
    faults: tuple[str, ...] = ()


def derive_table(snapshot: TrafficSnapshot) -> TrafficTable:
    """The table of a snapshot."""
    faults = list(snapshot.faults)
    hosts = _Owners("host name", faults)
    prefixes = _Owners("path prefix", faults)
    reached = {
        deployment.name: (tuple(_hosts(deployment, hosts, faults)), tuple(_prefixes(deployment, prefixes, faults)))
        for deployment in snapshot.deployments
    }
    services = tuple(
        _service(deployment, *reached[deployment.name], hosts, faults) for deployment in snapshot.deployments
    )
    return TrafficTable(snapshot.seen, services, tuple(dict.fromkeys(faults)))


@dataclass(frozen=True, slots=True)
class _Owners:
    """Which deployment has which host name or path prefix; who comes second is a fault."""

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
        elif owners.take(value, deployment.name):
            yield value


def _prefixes(deployment: DeploymentInTraffic, owners: _Owners, faults: list[str]) -> Iterator[Prefix]:
    given = {_slashed(entrance.value): entrance.strip_prefix for entrance in _of_kind(deployment, EntranceKind.PREFIX)}
    for value, strip in given.items():
        if not _PREFIX.fullmatch(value):
            faults.append(f"{deployment.name}: {value!r} is no path prefix, so it is left out")
        elif owners.take(value, deployment.name):
            yield Prefix(value, strip)


def _of_kind(deployment: DeploymentInTraffic, kind: EntranceKind) -> Iterator[Entrance]:
    return (entrance for entrance in deployment.entrances if entrance.kind is kind)


def _slashed(value: str) -> str:
    return f"/{value.strip('/')}/" if value.strip("/") else "/"


def _service(
    deployment: DeploymentInTraffic,
    hosts: tuple[str, ...],
    prefixes: tuple[Prefix, ...],
    owners: _Owners,
    faults: list[str],
) -> Service:
    live, canary, baseline = sides(deployment)
    preview = [route for route in deployment.routes if deployment.rules.preview and is_preview(route)]
    leaving = [route for route in deployment.routes if route.status is RouteStatus.TERMINATING]
    upstreams, share, beside, previewed, draining = (
        tuple(_upstreams(deployment.name, routes, faults))
        for routes in (live, canary or live, baseline or live, preview, leaving)
    )
    taken = {(upstream.ip, upstream.port) for upstream in (*upstreams, *share, *beside, *previewed)}
    weight = (deployment.weight or 0) if canary else 0
    previews = [f"{PREVIEW_PREFIX}{host}" for host in hosts if not host.startswith(ANY_HOST)]
    return Service(
        name=deployment.name,
        hosts=hosts,
        # who has this very name goes first: all host names were taken before any of a preview
        preview_hosts=tuple(host for host in previews if owners.take_if_free(host, deployment.name)),
        prefixes=prefixes,
        rules=deployment.rules,
        live=upstreams,
        preview=previewed,
        canary=share if deployment.has_canary else None,
        weight=weight,
        sticky=deployment.sticky,
        mirrored=deployment.mirrored if canary else 0,
        # where a new replica has the address of one that is gone, that one is asked nothing any more
        draining=tuple(upstream for upstream in draining if (upstream.ip, upstream.port) not in taken),
        baseline=beside if deployment.baseline is not None else None,
        baseline_weight=weight if baseline else 0,
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
        yield Upstream(route.id, route.revision, route.revision_id, ip, port, route.status, weight)
