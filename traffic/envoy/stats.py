"""Reads the admin pages of an Envoy: its statistics, and for each replica the requests in flight and answered.

The access log of the bootstrap does the counting.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from urllib.parse import quote, urlencode
from uuid import UUID

from pydantic import BaseModel

from domain.model.answer_counts import FIRST_BYTE_MS, Answers, Copies, Counters
from domain.traffic.request_counts import NOBODY, Answering, CallersCounted, Requests
from traffic.envoy.envoy_names import (
    MIRROR_STATISTICS,
    STOOD_IN,
    baseline_cluster,
    mirror_cluster,
    preview_cluster,
    side_of,
)

_STATS = "/stats?usedonly&format=json&histogram_buckets=cumulative&filter="
COUNTERS_PAGE = (
    f"{_STATS}^(rollway%5C.|server%5C.uptime$|cluster%5C.{MIRROR_STATISTICS}%5C..*upstream_rq_(completed|5..)$)"
)
REQUESTS_PAGE = f"{_STATS}^(rollway%5C.done%5C.|server%5C.uptime$)"
"""The page that `Counted.requests` alone needs: a fraction of the other one."""
LONGEST_MS = 86_400_000
"""The last bucket holds all longer times; to Envoy it must have an end."""


def callers_page(timed: Iterable[str]) -> str:
    """The page with what the callers of all deployments got, and with the waits of those of the named ones."""
    names = "|".join(re.escape(name) for name in sorted(timed))
    waits = quote(rf"|rollway\.first_byte\.cluster\.({names}){_ASKED}\.revision\.") if names else ""
    return f"{_STATS}^(rollway%5C.(done|failed|refused|redirected)%5C.|server%5C.uptime${waits})"


_ASKED = "(/(canary|baseline))?(/(http2|tls)[0-9a-z-]*)?"
"""The suffixes of the clusters of a deployment that callers are sent to."""
_NAME = re.compile(
    r"rollway\.(begun|done|failed|refused|redirected|cut|again|again_failed|first_byte)\.cluster\.(.*)\.revision\.([0-9a-f-]{36}!?|)"
)
_COPIES = re.compile(rf"cluster\.{MIRROR_STATISTICS}\.(.*)\.upstream_rq_(completed|5(?!03)\d\d)")


class _Bucket(BaseModel):
    upper_bound: float
    cumulative: int


class _Histogram(BaseModel):
    name: str
    buckets: list[_Bucket]


class _Stat(BaseModel):
    """A counter or gauge; or all histograms together, without a name."""

    name: str = ""
    value: int | str = 0
    histograms: list[_Histogram] = []


class _StatsPage(BaseModel):
    stats: list[_Stat]


@dataclass(frozen=True, slots=True)
class Counted:
    """The counters of one proxy since it began, `uptime` seconds ago: by cluster, then by revision id.

    `refused`: by cluster, the requests that no replica was there for. `copies`: by deployment.
    """

    uptime: int
    of: Mapping[str, Mapping[UUID, Answers]]
    refused: Mapping[str, int]
    copies: Mapping[str, Copies] = field(default_factory=dict)

    def counters(self, deployment: str, revisions: Collection[UUID]) -> Counters:
        """The counters of these revisions of a deployment, without answers to requests for a preview."""
        clusters = self._clusters(deployment)
        none: Mapping[UUID, Answers] = {}
        of = {
            revision: sum((self.of.get(name, none).get(revision, Answers()) for name in clusters), Answers())
            for revision in revisions
        }
        refused = sum(self.refused.get(name, 0) for name in clusters)
        return Counters(self.uptime, of, refused, self.copies.get(deployment, Copies()))

    def callers(self) -> CallersCounted:
        """The answers to all callers, without those to requests for a preview."""
        totals: dict[Answering, Requests] = {}
        for cluster, its in self.of.items():
            for revision, answers in its.items():
                _add(totals, cluster, revision, Requests.of(answers))
        for cluster, refused in self.refused.items():
            _add(totals, cluster, NOBODY, Requests(failed=refused))
        return CallersCounted(self.uptime, totals)

    def of_baseline(self, deployment: str, revision: UUID) -> Answers:
        """The counters of the replicas of this revision that a canary is compared with: a part of the revision's."""
        its = [of for name, of in self.of.items() if side_of(name) == baseline_cluster(deployment)]
        return sum((of.get(revision, Answers()) for of in its), Answers())

    def requests(self, deployment: str) -> int:
        """The requests to a deployment, answered or not, without those for a preview."""
        none: Mapping[UUID, Answers] = {}
        clusters = self._clusters(deployment)
        count = sum(answers.done for name in clusters for answers in self.of.get(name, none).values())
        return count + sum(self.refused.get(name, 0) for name in clusters)

    def _clusters(self, deployment: str) -> list[str]:
        return [name for name in {*self.of, *self.refused} if _is_of(name, deployment)]


def _add(totals: dict[Answering, Requests], cluster: str, revision: UUID, requests: Requests) -> None:
    deployment = cluster.partition("/")[0]
    if _is_of(cluster, deployment):
        before = totals.get((deployment, revision))
        totals[deployment, revision] = before + requests if before else requests


@dataclass(slots=True)
class _Counted:
    """The values of one revision in one cluster."""

    counts: dict[str, int] = field(default_factory=dict)
    first_byte: tuple[int, ...] = Answers().first_byte

    def answers(self, *, stood_in: bool) -> Answers:
        """The sum of the answers; a request that another side answered counts for the side that was tried first."""
        kinds = ("cut", "begun", "refused", "again", "again_failed", "redirected")
        total, failed = self.counts.get("done", 0), self.counts.get("failed", 0)
        answers = Answers(total, failed, self.first_byte, *(self.counts.get(kind, 0) for kind in kinds))
        return replace(answers, again=total, again_failed=failed) if stood_in else answers


def read_counters(page: bytes) -> Counted:
    """Read the page `COUNTERS_PAGE` of a proxy. Raises ValueError for any other page."""
    stats = _StatsPage.model_validate_json(page).stats
    counters: defaultdict[tuple[str, str], _Counted] = defaultdict(_Counted)
    uptime = next((int(stat.value) for stat in stats if stat.name == "server.uptime"), None)
    if uptime is None:
        raise ValueError("the page has no server.uptime")
    for stat in stats:
        if match := _NAME.fullmatch(stat.name):
            kind, cluster, revision = match.groups()
            counters[cluster, revision].counts[kind] = int(stat.value)
        for histogram in stat.histograms:
            if match := _NAME.fullmatch(histogram.name):
                counters[match[2], match[3]].first_byte = _buckets(histogram.buckets)
    of: defaultdict[str, dict[UUID, Answers]] = defaultdict(dict)
    for (cluster, revision), values in counters.items():
        if revision:
            its, answers = UUID(revision.removesuffix(STOOD_IN)), values.answers(stood_in=revision.endswith(STOOD_IN))
            of[cluster][its] = answers + of[cluster].get(its, Answers())
    for found_in in of.values():
        for its, answers in found_in.items():
            # a caller that left while a connection was made was sent nowhere
            found_in[its] = replace(answers, begun=max(answers.begun, answers.done))
    refused = {
        cluster: values.counts.get("done", 0) for (cluster, revision), values in counters.items() if not revision
    }
    return Counted(uptime, of, refused, _copies(stats))


def _copies(stats: Iterable[_Stat]) -> dict[str, Copies]:
    copies: defaultdict[str, Copies] = defaultdict(Copies)
    for stat in stats:
        if match := _COPIES.fullmatch(stat.name):
            value = int(stat.value)
            copies[match[1]] += Copies(value) if match[2] == "completed" else Copies(failed=value)
    return copies


def _buckets(cumulative: Iterable[_Bucket]) -> tuple[int, ...]:
    """Envoy adds its buckets up: 1 1 3 becomes 1 0 2. Raises ValueError when they are not those of the bootstrap."""
    values = list(cumulative)
    if [bucket.upper_bound for bucket in values] != [*FIRST_BYTE_MS, LONGEST_MS]:
        raise ValueError("the buckets of times to the first byte are not those of this release's bootstrap")
    sums = [0, *(bucket.cumulative for bucket in values)]
    return tuple(more - fewer for fewer, more in pairwise(sums))


def _is_of(cluster: str, deployment: str) -> bool:
    """No deployment's name has a slash, so a suffix after one names a further cluster of a deployment."""
    return cluster.partition("/")[0] == deployment and side_of(cluster) != preview_cluster(deployment)


ALONE_PAGE = "/stats?usedonly&type=Gauges&format=json&filter=^server%5C.(uptime|parent_connections)$"
"""The page that `is_alone` reads. With 5,000 deployments it costs an Envoy six times a page of few clusters."""

_MOST_NAMED = 500
"""The length of all names in a path, of which Envoy takes 60 KiB."""
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
    """A listener without a socket belongs to the proxy itself: requests wait there, and nobody drains it."""

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
    """The page with the answers under way at each replica of these deployments, and maybe of others."""
    sorted_names = sorted(deployments)
    if len(sorted_names) > _MOST_NAMED:
        return "/clusters?format=json"
    names = "|".join(map(re.escape, sorted_names))
    return f"/clusters?{urlencode({'format': 'json', 'filter': f'^({names})(/.*)?$'})}"


def under_way(page: bytes) -> Places:
    """The answers under way, requests that wait for a connection among them.

    A canary's replica may be in two clusters of its deployment: their answers are added up. Raises ValueError for what
    is no page of clusters.
    """
    return _by_place(page, _UNDER_WAY)


def read_answered(page: bytes) -> Places:
    """The answers of each replica, except 5xx, since it has been in its cluster. Raises ValueError as above."""
    return _by_place(page, _ANSWERED)


def by_cluster(page: bytes) -> dict[str, int]:
    """The answers under way by cluster. Raises ValueError for any other page."""
    counts: Counter[str] = Counter()
    for name, _, busy in _each(page, _UNDER_WAY):
        counts[name] += busy
    return counts


def _by_place(page: bytes, statistics: Collection[str]) -> Places:
    counts: Counter[tuple[str, str, int]] = Counter()
    for name, where, count in _each(page, statistics):
        counts[name.partition("/")[0], where.address, where.port_value] += count
    return counts


def _each(page: bytes, statistics: Collection[str]) -> Iterator[tuple[str, _Socket, int]]:
    for cluster in _Clusters.model_validate_json(page).cluster_statuses:
        for host in cluster.host_statuses:
            if (where := host.address.socket_address) is not None:
                yield cluster.name, where, sum(stat.value for stat in host.stats if stat.name in statistics)


def connections_page(deployments: Iterable[str]) -> str:
    """The page with the connections to replicas of these deployments, in dropped clusters too."""
    names = "|".join(map(re.escape, sorted(deployments)[:_MOST_NAMED]))
    pattern = rf"^cluster\.({names})(/.*)?\.{_CONNECTIONS}$"
    return f"/stats?usedonly&{urlencode({'type': 'Gauges', 'format': 'json', 'filter': pattern})}"


def connections(page: bytes) -> dict[str, int]:
    """The connections to replicas by deployment. Raises ValueError for any other page."""
    counts: Counter[str] = Counter()
    for stat in _GaugesPage.model_validate_json(page).stats:
        counts[stat.name.removeprefix("cluster.").removesuffix(f".{_CONNECTIONS}").partition("/")[0]] += stat.value
    return counts


def known_connections(page: bytes) -> dict[str, int]:
    """The connections in existing clusters by deployment. Raises ValueError for any other page."""
    counts: Counter[str] = Counter()
    for cluster in _Clusters.model_validate_json(page).cluster_statuses:
        name = cluster.name.partition("/")[0]
        if side_of(cluster.name) != mirror_cluster(name):  # its statistics have another name
            counts[name] += sum(
                stat.value for host in cluster.host_statuses for stat in host.stats if stat.name == "cx_active"
            )
    return counts


def is_alone(page: bytes) -> bool:
    """Whether this process of the proxy has no predecessor, so that its page before this one was complete.

    An Envoy that was restarted hot tells what came to its new process. The old one continues with what came before, and
    tells nobody: it is only known whether it still has connections. Raises ValueError for what is no page `ALONE_PAGE`.
    """
    gauges = {stat.name: stat.value for stat in _GaugesPage.model_validate_json(page).stats}
    if "server.uptime" not in gauges:
        raise ValueError("the page has no server.uptime")
    return not gauges.get("server.parent_connections")
