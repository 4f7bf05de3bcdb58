"""Envoy's route configuration: which request belongs to which deployment, when it is tried again, what is refused."""

import re
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

from domain.traffic.page_host import PAGE_HOST
from traffic.envoy.direct_responses import (
    MOST_BODY,
    answer,
    before_all,
    in_maintenance,
    limited,
    of_unsaid_size,
    read_whole,
    told_browsers,
    too_large,
    who_gets_through,
)
from traffic.envoy.envoy_names import PREVIEW_HEADER, ROUTE_CONFIGURATION, preview_cluster
from traffic.envoy.listeners import secured_hosts
from traffic.envoy.protocol_clusters import led_to, shares_of
from traffic.envoy.replica_routes import to_replicas
from traffic.envoy.retries import routed
from traffic.resources import Resource, listing, resource
from traffic.routing_table import Prefix, Service, TlsDoor, TrafficTable

_COUNTS_TRIES = {"include_request_attempt_count": True}
"""The bootstrap counts a request as begun with the first try, which this header tells from the others."""
_WANTS_PREVIEW = [
    {"name": PREVIEW_HEADER, "present_match": True},
    {"name": PREVIEW_HEADER, "string_match": {"exact": "false", "ignore_case": True}, "invert_match": True},
]


def route_configuration(table: TrafficTable, before: Resource | None = None, changes: Collection[str] = ()) -> Resource:
    """A virtual host for the host names of each deployment, and another for all path prefixes, the longest first.

    `before`: an older one, of which everything is kept but the routes to deployments that have `changes`.
    """
    old = before.entries if before else {}
    old_prefixes = old[_BY_PREFIX][0].entries if before else {}
    hosts = {
        service.name: tuple(resource(host) for host in _virtual_hosts(service, table.door))
        if before is None or service.name in changes
        else old[service.name]
        for service in table.services
    }
    prefixes = [(prefix, service) for service in table.services for prefix in service.prefixes]
    prefixes.sort(key=lambda pair: (-len(pair[0].value), pair[0].value))
    by_prefix = {
        prefix.value: tuple(resource(route) for route in _by_prefix(prefix, service))
        if before is None or service.name in changes
        else old_prefixes[prefix.value]
        for prefix, service in prefixes
    }
    by_prefix = {",": _OF_TWO_HOSTS, **by_prefix}
    by_prefix[""] = (resource(answer({"prefix": "/"}, 404, _NOBODY)),)
    hosts[_PAGE] = (resource(_OF_THE_PAGE),)
    hosts[_BY_PREFIX] = (listing({"name": "by-prefix", "domains": [_BY_PREFIX], **_COUNTS_TRIES}, "routes", by_prefix),)
    head = {"name": ROUTE_CONFIGURATION, "ignore_port_in_host_matching": True, **MOST_BODY}
    return listing(head, "virtual_hosts", hosts)


_BY_PREFIX = "*"
_TWO_HOSTS = {"prefix": "/", "headers": [{"name": ":authority", "string_match": {"contains": ","}}]}
_OF_TWO_HOSTS = (resource(answer(_TWO_HOSTS, 400, "Rollway: a request names one host.\n")),)
"""Envoy puts two Host lines into one, with a comma between them."""
_NOBODY = "Rollway: no deployment is reached by this host name or path. 'rollway status' lists those that exist.\n"


_PAGE = "/page"
"""The page's key among the virtual hosts. No deployment's name has a slash."""


def _virtual_hosts(service: Service, door: TlsDoor | None) -> Iterator[dict[str, Any]]:
    everything: dict[str, Any] = {"prefix": "/"}
    tls_hosts = secured_hosts(service)
    in_clear = tuple(host for host in service.hosts if host not in tls_hosts)
    for name, hosts in ((service.name, tls_hosts), (_in_clear(service.name) if tls_hosts else service.name, in_clear)):
        if hosts:
            first = before_all(service, door, is_secure=hosts == tls_hosts)
            yield {
                "name": name,
                "domains": list(hosts),
                **_COUNTS_TRIES,
                **(told_browsers(service, door) if hosts == tls_hosts else {}),
                **limited(service.rules.max_requests_per_second),
                **_TOLD_NOTHING,
                "routes": [
                    *first,
                    *_preview(service, _wanting_preview(everything), {}),
                    *_live(service, everything, {}),
                ],
            }
    if service.preview_hosts:
        first = before_all(service, door, is_secure=tls_hosts == service.hosts)
        yield {
            "name": preview_cluster(service.name),
            "domains": list(service.preview_hosts),
            **_TOLD_NOTHING,
            "routes": [*(first if service.asks_callers else ()), *_preview(service, everything, {})],
        }


def _in_clear(service: str) -> str:
    """The name of a virtual host for host names that have no certificate, where others of the same deployment have."""
    return f"{service}/in-clear"


def _by_prefix(prefix: Prefix, service: Service) -> Iterator[dict[str, Any]]:
    """Match both "/web" and "/web/..."; with `strip` the replica sees "/..."."""
    bare = prefix.value.rstrip("/")
    match: dict[str, Any] = {"path_separated_prefix": bare} if bare else {"prefix": "/"}
    rewrite: dict[str, Any] = {}
    if bare and prefix.strip:
        rewrite = {"regex_rewrite": {"pattern": {"regex": f"^{re.escape(bare)}/?"}, "substitution": "/"}}
    prefix_header = _told_prefix(bare) if rewrite else _TOLD_NOTHING
    for route in chain(_preview(service, _wanting_preview(match), rewrite), _live(service, match, rewrite)):
        yield {**route, **prefix_header} if "route" in route else route


_FORWARDED_PREFIX = "x-forwarded-prefix"
_TOLD_NOTHING = {"request_headers_to_remove": [_FORWARDED_PREFIX]}
"""No caller is believed about it: a service makes links of it."""


def _told_prefix(prefix: str) -> dict[str, Any]:
    """The part of its path that a replica does not see, for links in its answers. A % alone is special to Envoy."""
    header = {"key": _FORWARDED_PREFIX, "value": prefix.replace("%", "%%")}
    return {"request_headers_to_add": [{"header": header, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}]}


def _wanting_preview(match: dict[str, Any]) -> dict[str, Any]:
    return {**match, "headers": _WANTS_PREVIEW}


def _live(service: Service, match: dict[str, Any], rewrite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """To the replicas; in maintenance only who gets through, and everybody else is answered here."""
    if service.maintenance is None:
        return _within_size(service, match, rewrite)
    through = who_gets_through(service.maintenance, match)
    among = _within_size(service, through, rewrite) if service.maintenance.allow else ()
    return chain(among, in_maintenance(service.name, service.maintenance, match))


def _within_size(service: Service, match: dict[str, Any], rewrite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What says that it is too large is refused at once, and what says nothing is read whole first."""
    most = service.rules.max_body_bytes
    if most is not None:
        yield too_large(service.name, most, match)
        for route in to_replicas(service, of_unsaid_size(match), rewrite):
            yield {**route, "typed_per_filter_config": read_whole(most)}
    yield from to_replicas(service, match, rewrite)


def _preview(service: Service, match: dict[str, Any], rewrite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """To the coming revision, or a refusal: a request that asks for a preview is never answered by what is live."""
    if service.preview:
        where = led_to(shares_of(service, preview_cluster(service.name)))
        yield from routed(where, service, match, rewrite)
    else:
        yield answer(match, 503, f"Rollway: {service.name} has no revision to preview at the moment.\n")


_NOT_HERE = f"Rollway: {PAGE_HOST} is the page's alone, at the port of the server for people.\n"
_OF_THE_PAGE = {
    "name": "page",
    "domains": [PAGE_HOST, f"*.{PAGE_HOST}", f"{PAGE_HOST}.", f"*.{PAGE_HOST}."],
    "routes": [answer({"prefix": "/"}, 421, _NOT_HERE)],
}
"""A script of a service that answered by one of these names could set cookies that the page is shown."""
