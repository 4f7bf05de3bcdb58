"""The clusters of a deployment, as Envoy gets them, their endpoints, and the shares of each side's clusters.

A cluster of Envoy speaks one protocol. So a rollout to another one has two, each with its share of the requests:

    v1 v1 v1        web
    v1 v1 v2        web 2/3, web/http2 1/3
    v2 v2 v2        web/http2

No cluster ever speaks otherwise than at first: what is under way in one is told by it until the last of it has ended.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from domain.model.states import RouteStatus
from domain.text.numbers import WHOLE
from domain.traffic.caller_match import Sticky
from domain.traffic.tls import ReplicaTls
from domain.traffic.wire import MOST_HEADER_KIB, MOST_HEADER_LINES, Protocol
from traffic.envoy import retries
from traffic.envoy.envoy_names import (
    MIRROR_STATISTICS,
    STOOD_IN,
    baseline_cluster,
    canary_cluster,
    mirror_cluster,
    on_wire,
    preview_cluster,
    side_of,
    wire_of,
)
from traffic.resources import Resource, listing, resource
from traffic.routing_table import Service, Upstream

Shares = list[tuple[str, int]]
"""The clusters by name, each with its share of requests."""


def side(service: Service, name: str) -> tuple[Upstream, ...]:
    """The replicas of the side of that name that take requests."""
    sides = {
        service.name: service.live,
        canary_cluster(service.name): service.canary,
        baseline_cluster(service.name): service.baseline,
        preview_cluster(service.name): service.preview,
        mirror_cluster(service.name): service.canary,
    }
    return sides[name] or ()


def wires_of(service: Service, upstreams: Iterable[Upstream]) -> list[str]:
    """The protocols of these replicas, the oldest one's first; without replicas, that of the next one."""
    return list(dict.fromkeys(upstream.wire for upstream in upstreams)) or [service.wire]


def shares_of(service: Service, name: str, of: int = WHOLE) -> Shares:
    """The clusters of a side, with shares of `of` by their healthy replicas; of all if none is healthy."""
    upstreams = side(service, name)
    wires = wires_of(service, upstreams)
    if len(wires) == 1:
        return [(on_wire(name, wires[0]), of)]
    counts = Counter[str]()
    for upstream in _first(service, upstreams):
        counts[upstream.wire] += upstream.weight
    usable = [wire for wire in wires if counts[wire]]
    parts = [of * counts[wire] // counts.total() for wire in usable]
    parts[0] += of - sum(parts)
    return [(on_wire(name, wire), part) for wire, part in zip(usable, parts, strict=True)]


def _first(service: Service, upstreams: Sequence[Upstream]) -> Sequence[Upstream]:
    """The replicas that get requests first: healthy ones, with a seat where callers stay."""
    healthy = [upstream for upstream in upstreams if upstream.status is RouteStatus.HEALTHY] or upstreams
    seated = [upstream for upstream in healthy if upstream.seat is not None] if service.rules.sticky else []
    return seated or healthy


def led_to(shares: Shares, *, by_hash: bool = False) -> dict[str, Any]:
    """The clusters of a route. `by_hash`: a caller stays with a cluster for as long as its share allows."""
    if len(shares) == 1:
        return {"cluster": shares[0][0]}
    weighted: dict[str, Any] = {"clusters": [{"name": name, "weight": weight} for name, weight in shares]}
    return {"weighted_clusters": {**weighted, **({"use_hash_policy": True} if by_hash else {})}}


XDS_CLUSTER = "rollway-xds"
"""The bootstrap's name for the server that these resources come from."""
_HTTP = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_NO_LIMIT = 1_000_000
_SPEAKS_TLS = {"tls": "yes"}
_UPSTREAM_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
_SYSTEM_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
"""The path on Debian, Ubuntu, Alpine and Arch, and in the images of Envoy."""
_RING_SIZE = 4096
"""Places on the ring of callers who stay: with ten replicas each gets its tenth of them, give or take a twentieth of
that."""
_UNLIMITED = dict.fromkeys(("max_connections", "max_pending_requests", "max_requests", "max_retries"), _NO_LIMIT)
_HEALTH = {
    RouteStatus.HEALTHY: "HEALTHY",
    RouteStatus.UNHEALTHY: "UNHEALTHY",
    RouteStatus.DEGRADED: "DEGRADED",
    RouteStatus.TERMINATING: "DRAINING",
}


def clusters_of(service: Service) -> dict[str, tuple[Upstream, ...]]:
    """The clusters of a deployment with their endpoints; all but the first only while they have replicas."""
    canary = [canary_cluster(service.name)] if service.canary is not None else []
    baseline = [baseline_cluster(service.name)] if service.baseline is not None else []
    clusters = {}
    for name in (service.name, *canary, *baseline):
        upstreams = side(service, name)
        for wire in {*wires_of(service, upstreams), *(upstream.wire for upstream in service.draining)}:
            clusters[on_wire(name, wire)] = _on(wire, (*upstreams, *service.draining))
    preview = [preview_cluster(service.name)] if service.preview else []
    mirror = [mirror_cluster(service.name)] if service.mirrored else []
    for name in (*preview, *mirror):
        upstreams = side(service, name)
        clusters |= {on_wire(name, wire): _on(wire, upstreams) for wire in wires_of(service, upstreams)}
    return clusters


def is_left(name: str, service: Service) -> bool:
    """Whether only leaving replicas are in this cluster, so that no route leads to it."""
    return wire_of(name) not in wires_of(service, side(service, side_of(name)))


def _on(wire: str, upstreams: Iterable[Upstream]) -> tuple[Upstream, ...]:
    return tuple(upstream for upstream in upstreams if upstream.wire == wire)


def cluster_of(name: str, service: Service) -> dict[str, Any]:
    """The configuration of a cluster.

    A mirror counts under a name of its own, so that its statistics can be read alone.
    """
    wire, its_side = service.wires[wire_of(name)], side_of(name)
    config = cluster(name, wire.protocol)
    if wire.tls is not None:
        # who waits while nothing serves waits in the proxy itself, without TLS
        socket = {"name": "envoy.transport_sockets.tls", "typed_config": _tls(wire.tls, wire.protocol)}
        config["transport_socket_matches"] = [{"name": "tls", "match": _SPEAKS_TLS, "transport_socket": socket}]
    if its_side == service.name and service.rules.hold_seconds is not None:
        config["circuit_breakers"]["thresholds"].append({**_UNLIMITED, **retries.held_threshold(service.rules)})
    sides = {canary_cluster(service.name), baseline_cluster(service.name)}
    if its_side in sides:
        del config["outlier_detection"]  # the one replica on trial would be away for what old ones halve
    if service.rules.slow_start_seconds is not None:
        config["least_request_lb_config"]["slow_start_config"] = _slow_start(service.rules.slow_start_seconds)
    if service.rules.sticky and its_side in {service.name, *sides}:
        config |= {"lb_policy": "RING_HASH", "ring_hash_lb_config": {"minimum_ring_size": _RING_SIZE}}
        config["common_lb_config"]["consistent_hashing_lb_config"] = _bounded(service.rules.sticky)
    if its_side != mirror_cluster(service.name):
        return config
    return {**config, "alt_stat_name": f"{MIRROR_STATISTICS}.{service.name}"}


def _slow_start(seconds: float) -> dict[str, Any]:
    """Envoy divides by weight and requests under way meanwhile. At least a tenth of a share, so that all are tried."""
    return {"slow_start_window": f"{seconds:g}s", "min_weight_percent": {"value": 10}}


def _bounded(sticky: Sticky) -> dict[str, Any]:
    return {"hash_balance_factor": round(100 * sticky.max_load)} if sticky.max_load else {}


def _tls(tls: ReplicaTls, protocol: Protocol) -> dict[str, Any]:
    """TLS to the replicas: under one name, which their certificates must be for."""
    validation = {"trusted_ca": {"filename": _SYSTEM_AUTHORITIES}} if tls.ca is None else believed(tls.ca)
    names = [{"san_type": "DNS", "matcher": {"exact": tls.name}}]
    context = {
        "alpn_protocols": ["h2"] if protocol is Protocol.HTTP2 else ["http/1.1"],
        "validation_context": {**validation, "match_typed_subject_alt_names": names},
    }
    return {"@type": _UPSTREAM_TLS, "sni": tls.name, "common_tls_context": context}


def believed(authorities: str) -> dict[str, Any]:
    """The authorities to trust; while none is known, no certificate is trusted: none has this fingerprint."""
    if authorities:
        return {"trusted_ca": {"inline_string": authorities}}
    return {"verify_certificate_hash": ["0" * 64]}


def cluster(name: str, protocol: Protocol = Protocol.HTTP1) -> dict[str, Any]:
    """A cluster whose endpoints, and their health, are a resource of their own on the same stream."""
    return {
        "name": name,
        "type": "EDS",
        "eds_cluster_config": {"service_name": name, "eds_config": {"resource_api_version": "V3", "ads": {}}},
        "connect_timeout": "1s",
        "lb_policy": "LEAST_REQUEST",
        # Envoy draws replicas at random and takes the one with least to do. Of two, its default, both may be busy while
        # a third is idle; 128 miss an idle one among 16 in 1 of 4,000 requests, among 32 in 1 of 60.
        "least_request_lb_config": {"choice_count": 128},
        # health is a hint: when no replica is healthy (or degraded), requests go to those that are not
        # and a change is applied when it is acknowledged, not up to a second later
        "common_lb_config": {"healthy_panic_threshold": {"value": 1}, "update_merge_window": "0s"},
        # not even then do requests go to a replica that leaves
        "lb_subset_config": {"fallback_policy": "NO_FALLBACK", "subset_selectors": [{"keys": ["serving"]}]},
        # a replica that left takes no new request, whatever its health was; what it answers now it may finish
        "ignore_health_on_host_removal": True,
        "per_connection_buffer_limit_bytes": 1_048_576,
        "circuit_breakers": {"thresholds": [_UNLIMITED]},
        "outlier_detection": _OUTLIERS,
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": _UPSTREAM[protocol]
        },
    }


_OUTLIERS = {
    # Ejected after three requests in a row without a connection, an answer, or an answer in time, or after five answers
    # of 502, 503 or 504 in a row: for 5 s, and 5 s longer each time, by when the prober has seen it too. Half of the
    # replicas stay whatever happens: what fails everywhere is no fault of one of them. Envoy takes the former for a
    # gateway's failures, and what _FAILURES matches for 5xx.
    "consecutive_gateway_failure": 3,
    "enforcing_consecutive_gateway_failure": 100,
    "consecutive_5xx": 5,
    "enforcing_consecutive_5xx": 100,
    "enforcing_success_rate": 0,
    "interval": "0.5s",
    "base_ejection_time": "5s",
    "max_ejection_time": "30s",
    "max_ejection_percent": 50,
}

_FAILURES = {"headers": [{"name": ":status", "string_match": {"safe_regex": {"regex": "50[234]"}}}]}
"""Answers that say nothing about the request, only that the replica cannot answer."""

_UPSTREAM = {
    protocol: {
        "@type": _HTTP,
        "explicit_http_config": {options: {}},
        "outlier_detection": {"error_matcher": {"http_response_headers_match": _FAILURES}},
        # many servers close an idle connection after 2 s (gunicorn) or 5 s (uvicorn, Node.js); a POST that is sent just
        # then cannot be sent again, so the proxy closes first
        "common_http_protocol_options": {
            "idle_timeout": "1.5s",
            "max_headers_count": MOST_HEADER_LINES,
            "max_response_headers_kb": MOST_HEADER_KIB,
        },
    }
    for protocol, options in {Protocol.HTTP1: "http_protocol_options", Protocol.HTTP2: "http2_protocol_options"}.items()
}


def stand_ins_of(name: str, service: Service) -> tuple[Upstream, ...]:
    """The sides that answer for a canary, or its baseline, when none of its replicas can.

    One who is spoken to in another way cannot stand in.
    """
    sides = {canary_cluster(service.name): service.canary, baseline_cluster(service.name): service.baseline}
    if sides.get(side_of(name), service.live) in ((), service.live, None) or is_left(name, service):
        return ()
    return _on(wire_of(name), service.live)


def assignment_of(name: str, endpoints: tuple[Upstream, ...], service: Service) -> Resource:
    """The endpoints of a cluster of a deployment; further ones are used when none of these is healthy.

    Those others stand in for a canary; or, where callers stay, they wait for a seat.
    """
    is_live = side_of(name) == service.name
    waiting = _without_seats(endpoints) if service.rules.sticky and is_live else frozenset()
    tls = service.wires[wire_of(name)].tls is not None
    first = [_endpoint(upstream, tls=tls) for upstream in endpoints if upstream not in waiting]
    if is_live and service.is_held and wire_of(name) == service.wire:
        first.append(resource(retries.held_place()))
    others = [_endpoint(upstream, tls=tls) for upstream in endpoints if upstream in waiting]
    if stand_ins := stand_ins_of(name, service):
        failed = f"{endpoints[0].revision_id}{STOOD_IN}"
        others = [_endpoint(upstream, failed, tls=tls) for upstream in stand_ins]
    assignment = {"cluster_name": name}
    if not others:
        return listing(assignment, "endpoints", {"first": (_lot({}, first),)})
    # one healthy replica is enough for all to answer themselves
    policy = {"policy": {"overprovisioning_factor": 1_000_000}}
    lots = {"first": (_lot({}, first),), "others": (_lot({"priority": 1}, others),)}
    return listing(assignment | policy, "endpoints", lots)


def _lot(content: Mapping[str, Any], endpoints: Iterable[Resource]) -> Resource:
    return listing(content, "lb_endpoints", {"all": tuple(endpoints)})


def _without_seats(endpoints: tuple[Upstream, ...]) -> frozenset[Upstream]:
    """The replicas that wait for a seat while others have one."""
    serving = [upstream for upstream in endpoints if upstream.status is not RouteStatus.TERMINATING]
    waiting = frozenset(upstream for upstream in serving if upstream.seat is None)
    return waiting if len(waiting) < len(serving) else frozenset()


@lru_cache(maxsize=16_384)  # more than one deployment has, or none would be found again
def _endpoint(upstream: Upstream, counts_for: str = "", *, tls: bool) -> Resource:
    """One replica. Where callers stay, its place among the others is made from `hash_key` if it has a seat."""
    revision = counts_for or str(upstream.revision_id)
    who = {"revision": upstream.revision, "revision_id": revision, "route": str(upstream.route_id)}
    serving = "no" if upstream.status is RouteStatus.TERMINATING else "yes"
    speaks = {"envoy.transport_socket_match": _SPEAKS_TLS} if tls else {}
    found_by = {} if upstream.seat is None else {"hash_key": f"seat {upstream.seat}"}
    content = {
        "endpoint": {"address": {"socket_address": {"address": upstream.ip, "port_value": upstream.port}}},
        "health_status": _HEALTH[upstream.status],
        "load_balancing_weight": upstream.weight,
        "metadata": {"filter_metadata": {"rollway": who, "envoy.lb": {"serving": serving, **found_by}, **speaks}},
    }
    return resource(content)
