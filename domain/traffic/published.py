"""The news for proxies: deployments, where they are reached, and the replicas that may take their requests."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from domain.model.states import RouteStatus, TrafficStatus


class EntranceKind(StrEnum):
    """The way to tell requests for a deployment from others: by the host they name, or by how their path begins."""

    HOST = "host"
    PREFIX = "prefix"


@dataclass(frozen=True, slots=True)
class Entrance:
    """One host name, or one path prefix ("/web/"), which the proxy removes before it passes a request on."""

    kind: EntranceKind
    value: str
    strip_prefix: bool = True


class Protocol(StrEnum):
    """The protocol of replicas, in clear text; with HTTP/2, from the first byte on."""

    HTTP1 = "http1"
    HTTP2 = "http2"


_PROTOCOLS = {protocol.value: protocol for protocol in Protocol}


def known_protocol(word: str) -> Protocol:
    """The protocol of that name; one that only a newer release knows is taken for HTTP/1."""
    return _PROTOCOLS.get(word, Protocol.HTTP1)


@dataclass(frozen=True, slots=True)
class RequestRules:
    """The rules for a deployment's requests, which proxies follow. `timeout_seconds`: None for no limit.

    `hedge_after_seconds`: a request that may be sent twice, and has had no first byte of its answer for so long, is
    sent to a second replica too, and the first answer counts; None for never. `preview`: whether the revision that is
    being rolled out can be looked at before it gets traffic. `idle_timeout_seconds`: a request on which nothing is sent
    for so long, in either direction, is cut; None for never. `protocol`: what replicas are asked in.
    """

    timeout_seconds: float | None = None
    hedge_after_seconds: float | None = 5.0
    preview: bool = True
    idle_timeout_seconds: float | None = 3600.0
    protocol: Protocol = Protocol.HTTP1


USUAL = RequestRules()
"""What a new deployment has."""


@dataclass(frozen=True, slots=True)
class RouteInTraffic:
    """A route whose replica runs and was not asked to end yet.

    `ratio`: its share of requests against the others' (0..1).
    `is_candidate`: of the revision that its deployment is rolling out to. A parked one waits for a way back.
    `is_current`: of the revision that is to be replaced, or that runs while there is no rollout.
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


@dataclass(frozen=True, slots=True)
class Canary:
    """The sharing of requests with a canary that there is, or was just now.

    `weight`: how many of 10,000 requests the candidates get; None: all replicas share them. `sticky`: the id of
    the rollout by whose cookie callers stay on their side. `mirrored`: how many of 10,000 requests that only read the
    candidates get copies of. `baseline`: the routes of its fresh baseline, which get as many as the candidates; None:
    it has, and just now had, none. `floor`: as many as serve at least; what another canary left helps out below it.
    """

    weight: int | None = None
    sticky: UUID | None = None
    mirrored: int = 0
    baseline: frozenset[UUID] | None = None
    floor: int = 0


@dataclass(frozen=True, slots=True)
class DeploymentInTraffic:
    """A deployment that is not destroyed, with its routes in id order."""

    name: str
    entrances: tuple[Entrance, ...]
    rules: RequestRules
    routes: tuple[RouteInTraffic, ...]
    canary: Canary | None = None


@dataclass(frozen=True, slots=True)
class TrafficSnapshot:
    """All that proxies may know, read in one snapshot of Postgres. `seen`: that snapshot (`pg_snapshot`, as text).

    What a transaction took out of traffic is missing here exactly when `pg_visible_in_snapshot(its id, seen)`.
    `faults`: what could not be read and is missing too, a sentence each.
    """

    seen: str
    deployments: tuple[DeploymentInTraffic, ...]
    faults: tuple[str, ...] = ()
