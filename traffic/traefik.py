"""The table as the document that the HTTP provider of Traefik 3 polls."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from domain.model.states import RouteStatus
from domain.text.numbers import WHOLE
from domain.traffic.tls_material import ANY_HOST
from domain.traffic.wire import Protocol
from traffic.envoy.envoy_names import COOKIE_SECONDS, PREVIEW_HEADER, cookie_of
from traffic.prometheus import address_of
from traffic.routing_table import Service, TrafficTable, Upstream

_NOBODY = "_nobody"
_SCHEMES = {Protocol.HTTP1: "http", Protocol.HTTP2: "h2c"}
_HOST_PRIORITY = 1_000_000
_ANY_HOST_PRIORITY = 500_000
_WANTED = f"HeaderRegexp(`{PREVIEW_HEADER}`, `.+`) && !Header(`{PREVIEW_HEADER}`, `false`)"


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to a service: the rule, its rank among all rules, and the prefix that is removed on that way."""

    rule: str
    priority: int
    stripped: str | None = None


def traefik_document(table: TrafficTable) -> dict[str, Any]:
    """Routers, services and middlewares of all deployments, for `providers.http`.

    Traefik knows no health hint: it gets the healthy replicas, or all of them while none is healthy. It reads no empty
    section, so there is none. Names of ours have an underscore, which no deployment's name has.

    A deployment whose callers must show a certificate is not among them: by Traefik they would come without. Nor is
    that whose replicas speak TLS, of which Traefik is not told whom to believe.
    """
    routers: dict[str, Any] = {}
    services: dict[str, Any] = {}
    middlewares: dict[str, Any] = {}
    for service in table.services:
        if service.asks_callers or service.speaks_tls:
            continue
        ways = [
            (service.name, service.live, _live_ways(service)),
            (f"{service.name}_preview", service.preview, _preview_ways(service)),
        ]
        for name, upstreams, _ in ways:
            if upstreams:
                services[name] = _balanced(upstreams, service, stays=name == service.name)
        if service.weight:
            services |= _split(service, services[service.name])
        for name, upstreams, own_ways in ways:
            for number, way in enumerate(own_ways):
                router = f"{name}_{number}"
                routers[router] = {
                    "rule": way.rule,
                    "priority": way.priority,
                    "service": name if upstreams else _NOBODY,
                }
                if way.stripped:
                    routers[router]["middlewares"] = [router]
                    middlewares[router] = {"stripPrefix": {"prefixes": [way.stripped]}}
    if any(router["service"] == _NOBODY for router in routers.values()):
        # nothing listens there: the answer is 502, rather than one of a revision that was not asked for
        services[_NOBODY] = {"loadBalancer": {"servers": [{"url": "http://127.0.0.1:1"}]}}
    sections = {"routers": routers, "services": services, "middlewares": middlewares}
    return {"http": {name: entries for name, entries in sections.items() if entries}}


def _split(service: Service, live: dict[str, Any]) -> dict[str, Any]:
    """The service as a weighted one, of itself, its canary and the baseline."""
    sides = {f"{service.name}_live": live, f"{service.name}_canary": {}}
    sides[f"{service.name}_canary"] = _balanced(service.canary or (), service, stays=True)
    baseline = service.baseline_weight
    if baseline:
        sides[f"{service.name}_baseline"] = _balanced(service.baseline or (), service, stays=True)
    weights = zip(sides, (WHOLE - service.weight - baseline, service.weight, baseline), strict=False)
    weighted: dict[str, Any] = {"services": [{"name": name, "weight": weight} for name, weight in weights]}
    always = service.rules.sticky
    if service.sticky:
        weighted["sticky"] = _by_cookie(cookie_of(service.sticky))
    elif always and always.cookie:
        weighted["sticky"] = _by_cookie(f"{always.cookie}-side")
    return {**sides, service.name: {"weighted": weighted}}


def _balanced(upstreams: tuple[Upstream, ...], service: Service, *, stays: bool) -> dict[str, Any]:
    """Some replicas as a service. Its own cookie names the replica of a caller who `stays`; a header cannot."""
    balancer: dict[str, Any] = {"servers": _servers(upstreams, service)}
    sticky = service.rules.sticky
    if stays and sticky and sticky.cookie:
        balancer["sticky"] = _by_cookie(sticky.cookie)
    return {"loadBalancer": balancer}


def _by_cookie(name: str) -> dict[str, Any]:
    return {"cookie": {"name": name, "maxAge": COOKIE_SECONDS, "httpOnly": True, "sameSite": "lax"}}


def _servers(upstreams: tuple[Upstream, ...], service: Service) -> list[dict[str, Any]]:
    targets = [upstream for upstream in upstreams if upstream.status is RouteStatus.HEALTHY] or list(upstreams)
    schemes = {name: _SCHEMES[wire.protocol] for name, wire in service.wires.items()}
    servers = [
        {"url": f"{schemes[upstream.wire]}://{address_of(upstream)}", "weight": upstream.weight} for upstream in targets
    ]
    if len({upstream.weight for upstream in targets}) == 1:  # the first versions of Traefik 3 know no weight here
        return [{"url": server["url"]} for server in servers]
    return servers


def _live_ways(service: Service) -> Iterator[_Way]:
    """Host names go before prefixes and longer prefixes before shorter ones, as in Envoy."""
    for host in service.hosts:
        if host.startswith(ANY_HOST):
            below = host.removeprefix(ANY_HOST)
            yield _Way(f"HostRegexp(`^.+\\.{re.escape(below)}$`)", _ANY_HOST_PRIORITY + 2 * len(below))
        else:
            yield _Way(f"Host(`{host}`)", _HOST_PRIORITY)
    for prefix in service.prefixes:
        bare = prefix.value.rstrip("/")
        rule = f"(Path(`{bare}`) || PathPrefix(`{prefix.value}`))" if bare else "PathPrefix(`/`)"
        yield _Way(rule, 2 * len(prefix.value), bare if bare and prefix.strip else None)


def _preview_ways(service: Service) -> Iterator[_Way]:
    for way in _live_ways(service):
        yield _Way(f"{way.rule} && {_WANTED}", way.priority + 1, way.stripped)
    for host in service.preview_hosts:
        yield _Way(f"Host(`{host}`)", _HOST_PRIORITY)
