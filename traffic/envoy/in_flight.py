"""Reads what an Envoy has under way at each replica, and what each has answered, from its page of clusters."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from urllib.parse import urlencode

from pydantic import BaseModel

from traffic.envoy.envoy_names import mirror_cluster, side_of

ALONE_PAGE = "/stats?usedonly&type=Gauges&format=json&filter=^server%5C.(uptime|parent_connections)$"
"""What `is_alone` reads. With 5,000 deployments it costs an Envoy six times what a page of few clusters does."""

_MOST_NAMED = 500
"""Names in a path, of which Envoy takes 60 KiB."""
_CONNECTIONS = "upstream_cx_active"
_UNDER_WAY = frozenset({"rq_active", "rq_pending_active"})
_ANSWERED = frozenset({"rq_success"})
Places = Mapping[tuple[str, str, int], int]
"""A number for each replica, by deployment, IP address and port."""


class _Gauge(BaseModel):
    name: str
    value: int = 0


class _Socket(BaseModel):
    address: str
    port_value: int = 0


class _Address(BaseModel):
    """Without a socket it is a listener of the proxy itself, where requests wait and nobody drains."""

    socket_address: _Socket | None = None


class _Host(BaseModel):
    address: _Address
    stats: list[_Gauge] = []


class _Cluster(BaseModel):
    name: str
    host_statuses: list[_Host] = []


class _Clusters(BaseModel):
    cluster_statuses: list[_Cluster] = []


class _GaugesPage(BaseModel):
    stats: list[_Gauge]


def clusters_page(deployments: Iterable[str]) -> str:
    """The page that says how many answers are under way at each replica of these deployments, and maybe of others."""
    named = sorted(deployments)
    if len(named) > _MOST_NAMED:
        return "/clusters?format=json"
    names = "|".join(map(re.escape, named))
    return f"/clusters?{urlencode({'format': 'json', 'filter': f'^({names})(/.*)?$'})}"


def under_way(page: bytes) -> Places:
    """The answers under way, requests that wait for a connection among them.

    A canary's replica may be in two clusters of its deployment: their answers are added up. Raises ValueError for what
    is no page of clusters.
    """
    return _by_place(page, _UNDER_WAY)


def answered(page: bytes) -> Places:
    """How often each has answered, but for 5xx, since it has been in its cluster. Raises ValueError as above."""
    return _by_place(page, _ANSWERED)


def by_cluster(page: bytes) -> dict[str, int]:
    """The answers under way by cluster. Raises ValueError for what is no page of clusters."""
    found: Counter[str] = Counter()
    for name, _, busy in _each(page, _UNDER_WAY):
        found[name] += busy
    return found


def _by_place(page: bytes, counted: Collection[str]) -> Places:
    found: Counter[tuple[str, str, int]] = Counter()
    for name, where, count in _each(page, counted):
        found[name.partition("/")[0], where.address, where.port_value] += count
    return found


def _each(page: bytes, counted: Collection[str]) -> Iterator[tuple[str, _Socket, int]]:
    for cluster in _Clusters.model_validate_json(page).cluster_statuses:
        for host in cluster.host_statuses:
            if (where := host.address.socket_address) is not None:
                yield cluster.name, where, sum(stat.value for stat in host.stats if stat.name in counted)


def connections_page(deployments: Iterable[str]) -> str:
    """The page that says how many connections there are to replicas of these deployments, in dropped clusters too."""
    names = "|".join(map(re.escape, sorted(deployments)[:_MOST_NAMED]))
    named = rf"^cluster\.({names})(/.*)?\.{_CONNECTIONS}$"
    return f"/stats?usedonly&{urlencode({'type': 'Gauges', 'format': 'json', 'filter': named})}"


def connections(page: bytes) -> dict[str, int]:
    """The connections to replicas by deployment. Raises ValueError for what is no page of gauges."""
    found: Counter[str] = Counter()
    for stat in _GaugesPage.model_validate_json(page).stats:
        found[stat.name.removeprefix("cluster.").removesuffix(f".{_CONNECTIONS}").partition("/")[0]] += stat.value
    return found


def known_connections(page: bytes) -> dict[str, int]:
    """The connections in clusters that there are, by deployment. Raises ValueError for what is no page of clusters."""
    found: Counter[str] = Counter()
    for cluster in _Clusters.model_validate_json(page).cluster_statuses:
        name = cluster.name.partition("/")[0]
        if side_of(cluster.name) != mirror_cluster(name):  # its statistics have another name
            found[name] += sum(
                stat.value for host in cluster.host_statuses for stat in host.stats if stat.name == "cx_active"
            )
    return found


def is_alone(page: bytes) -> bool:
    """Whether what a proxy said just before this page is all that it has under way.

    An Envoy that was restarted hot tells what came to its new process. The old one goes on with what came before, and
    tells nobody: it is only known whether it still has connections. Raises ValueError for what is no page `ALONE_PAGE`.
    """
    gauges = {stat.name: stat.value for stat in _GaugesPage.model_validate_json(page).stats}
    if "server.uptime" not in gauges:
        raise ValueError("the page has no server.uptime")
    return not gauges.get("server.parent_connections")
