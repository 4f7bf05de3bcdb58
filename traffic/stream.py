"""A proxy's stream: each kind of resource on it, the next message to the proxy, and the newest table that it knows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from traffic.envoy.envoy_names import ROUTE_CONFIGURATION
from traffic.resources import Named, ResourceKind, Resources, Watermark

GONE = ""
"""The version of a resource that the proxy must drop."""
NOTHING_YET = Watermark(0, "", "")
MOST_NAMES = 50_000
"""The most resources of one kind: an Envoy that comes back can name 40,000 in one message."""
LONGEST_NAME = 512
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class TooManyNamesError(Exception):
    """A proxy asks for, or claims to hold, more than any table of ours has. The sentence is for its operator."""


@dataclass(frozen=True, slots=True)
class DiscoveryRequest:
    """A proxy's request for one kind of resource.

    `holds`: versions by name, from another stream. `nonce`: of the response that it answers, "" for none; `error`: why
    it did not take that response over, "" when it did.
    """

    kind: ResourceKind
    subscribe: tuple[str, ...] = ()
    unsubscribe: tuple[str, ...] = ()
    holds: Mapping[str, str] = field(default_factory=dict)
    nonce: str = ""
    error: str = ""


@dataclass(slots=True)
class SentPart:
    """A response that is not answered yet: `versions` by name.

    With it the proxy knows this kind `as_of` a table, whose clusters are `clusters`.
    """

    nonce: str
    versions: dict[str, str]
    as_of: Watermark
    clusters: Named


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A refusal of one resource: it is not sent again before `not_before` (monotonic seconds), unless it changes."""

    version: str
    count: int
    not_before: float


@dataclass(slots=True)
class StreamPart:
    """One kind of resource. `most`: how many may be sent at once, while it is looked for which one is refused.

    `complete`: what the proxy was last seen to hold all of. `acknowledged`: the newest table whose part it holds.
    """

    is_asked: bool = False
    is_answered: bool = False
    subscribed: set[str] = field(default_factory=set)
    versions: dict[str, str] = field(default_factory=dict)
    refused: dict[str, _Refusal] = field(default_factory=dict)
    pending: SentPart | None = None
    most: int | None = None
    complete: Named | None = None
    acknowledged: Watermark = NOTHING_YET

    def hear(self, request: DiscoveryRequest, now: float) -> tuple[str, ...]:
        """Take in a request. Returns the names of the resources that it refuses.

        Raises TooManyNamesError when it says more than a proxy of ours can mean.
        """
        self._bound(request)
        self.complete = None
        self.is_asked = True
        self.is_answered |= bool(request.holds)
        self.versions |= request.holds
        refused = self._hear_answer(request, now)
        for name in request.unsubscribe:
            self.subscribed.discard(name)
            self.refused.pop(name, None)
            self.forget(name)
        for name in request.subscribe:
            self.subscribed.add(name)
            if name not in request.holds:  # who asks again waits for an answer
                self.forget(name)
        return refused

    def _bound(self, request: DiscoveryRequest) -> None:
        """Bound the request: it is kept as long as its stream lasts."""
        words = (*request.subscribe, *request.holds, *request.holds.values())
        if any(len(name) > LONGEST_NAME for name in words):
            raise TooManyNamesError(f"A name or version on a stream has {LONGEST_NAME} characters at most.")
        subscriptions = len(self.subscribed) + sum(name not in self.subscribed for name in request.subscribe)
        count = len(self.versions) + sum(name not in self.versions for name in request.holds)
        if max(subscriptions, count) > MOST_NAMES:
            sentence = f"A stream may name {MOST_NAMES:,} {request.kind} at most, and this one names more."
            raise TooManyNamesError(sentence)

    def forget(self, name: str) -> None:
        """The proxy may hold this no more, whatever it answers to what is under way."""
        self.complete = None
        self.versions.pop(name, None)
        if self.pending is not None:
            self.pending.versions.pop(name, None)

    def is_due(self, name: str, version: str, now: float) -> bool:
        """Whether this may be sent: not when it was refused a moment ago."""
        refusal = self.refused.get(name)
        return refusal is None or refusal.version != version or refusal.not_before <= now

    def _hear_answer(self, request: DiscoveryRequest, now: float) -> tuple[str, ...]:
        pending = self.pending
        if pending is None or pending.nonce != request.nonce:
            return ()
        self.pending = None
        if request.error:
            return self._hear_refusal(pending.versions, now)
        for name, version in pending.versions.items():
            self.refused.pop(name, None)
            if version == GONE:
                self.versions.pop(name, None)
            else:
                self.versions[name] = version
        self.most = None if self.most is None else 2 * self.most
        self.acknowledged = max(self.acknowledged, pending.as_of, key=number_of)
        return ()

    def _hear_refusal(self, versions: Mapping[str, str], now: float) -> tuple[str, ...]:
        """Send half of several to find the refused one; a single one gets a pause that doubles."""
        if len(versions) > 1:
            self.most = len(versions) // 2
            return tuple(versions)
        for name, version in versions.items():
            last = self.refused.get(name)
            count = last.count + 1 if last and last.version == version else 0
            self.refused[name] = _Refusal(version, count, now + min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**count))
        return tuple(versions)


def number_of(mark: Watermark) -> int:
    """The place of a table among the tables of this server."""
    return mark.number


_CLUSTERS, _ENDPOINTS, _ROUTES, _LISTENERS, _SECRETS = ResourceKind
_WHOLE = {_CLUSTERS, _LISTENERS}
"""A proxy gets all resources of these kinds, and notice of those that are gone."""
_BY_NAME = {_ENDPOINTS, _SECRETS}
"""A proxy gets the resources of these kinds that it asks for, as its clusters and listeners name them."""
_BY_CHOICE = {_LISTENERS, _SECRETS}
"""A proxy may know a table without these kinds: an older bootstrap does not ask for them."""


class Numbered(Protocol):
    """A table, as its server publishes it."""

    @property
    def resources(self) -> Resources:
        """The resources in it."""

    @property
    def watermark(self) -> Watermark:
        """The place of a table among the tables of the server."""


Table = TypeVar("Table", bound=Numbered)


@dataclass(frozen=True, slots=True)
class Response(Generic[Table]):
    """A message to a proxy: names of resources that `updates`, with what `table` has, and of `removed` ones."""

    kind: ResourceKind
    nonce: str
    updates: tuple[str, ...]
    removed: tuple[str, ...]
    table: Table


class Stream(Generic[Table]):
    """A stream. Of each kind one response is under way at a time, so a slow proxy is told less often.

    Clusters and their endpoints come before routes to them, and clusters go after the routes to them have gone. Only
    then does a proxy hear who leaves a cluster to which no route leads any more:

        clusters ─► endpoints ─► routes ─► clusters that are left ─► removed clusters

    A refused response is sent again in halves, until the refused resource is alone; that is tried again after a pause
    that grows, and holds up nothing else. The proxy knows a table when it holds of each kind what that table has, or
    what a later one has: so one that is always behind by one response still advances.
    """

    def __init__(self) -> None:
        self._parts = {kind: StreamPart() for kind in ResourceKind}
        self._nonce = 0
        self._routed: Named | None = None  # the clusters of the table whose routes it holds
        self._coming: Table | None = None  # the table whose routes wait for their clusters, though newer ones come

    @property
    def acknowledged(self) -> Watermark | None:
        """The newest table that the proxy knows; None while that is unknown."""
        parts = (part for kind, part in self._parts.items() if part.is_asked or self._must_be_asked(kind))
        oldest = min((part.acknowledged for part in parts), key=number_of)
        return oldest if oldest.number else None

    def _must_be_asked(self, kind: ResourceKind) -> bool:
        """Whether the proxy knows no table before it asks for this kind. Without clusters it asks for no endpoints."""
        if kind is _ENDPOINTS:
            return bool(self._parts[_CLUSTERS].versions)
        return kind not in _BY_CHOICE

    def refused(self, kind: ResourceKind) -> Mapping[str, str]:
        """The versions, by name, of the resources that the proxy refused when each was sent alone."""
        return {name: refusal.version for name, refusal in self._parts[kind].refused.items()}

    def next_try(self, now: float) -> float | None:
        """The time when something refused may be sent again (monotonic seconds, as is `now`)."""
        refusals = (refusal for part in self._parts.values() for refusal in part.refused.values())
        return min((refusal.not_before for refusal in refusals if refusal.not_before > now), default=None)

    def hear(self, request: DiscoveryRequest, now: float) -> tuple[str, ...]:
        """Take in a request. Returns the names of the resources that it refuses."""
        part = self._parts[request.kind]
        pending = part.pending
        refused = part.hear(request, now)
        if request.kind is _ROUTES and pending is not None and part.pending is None and not refused:
            self._routed = pending.clusters
        return refused

    def next(self, newest: Table, now: float) -> Response[Table] | None:
        """The next message; None when there is nothing to say, or an answer comes first."""
        for kind, part in self._parts.items():
            if part.is_asked and part.pending is None:
                response = self._next_of(kind, part, newest, now)
                if response is not None:
                    return response
        return None

    def _next_of(self, kind: ResourceKind, part: StreamPart, newest: Table, now: float) -> Response[Table] | None:
        resources = newest.resources.by_kind[kind]
        if part.complete is resources:
            part.acknowledged = newest.watermark
            return None
        updates = {name: item.version for name, item in resources.items() if part.versions.get(name) != item.version}
        if kind in _BY_NAME:  # of a cluster that it has not asked for it has no endpoints
            updates = {name: version for name, version in updates.items() if name in part.subscribed}
        gone = {name: GONE for name in part.versions if name not in resources} if kind in _WHOLE else {}
        # without any of them Envoy waits to be told so
        says_none = kind in _WHOLE and not part.is_answered
        if not updates and not gone and not says_none:
            part.complete, part.acknowledged = resources, newest.watermark
            return None
        if kind is _ROUTES:
            return self._next_routes(part, newest, now)
        due = self._due(kind, updates | gone, newest, now)
        if not due and not says_none:
            return None
        return self._send(kind, due, self._as_of(newest.watermark, due, updates, gone), newest)

    def _next_routes(self, part: StreamPart, newest: Table, now: float) -> Response[Table] | None:
        """The routes of one table, once its clusters are there: tables that come faster than that hold up no routes."""
        table = self._coming or newest
        version = table.resources.by_kind[_ROUTES][ROUTE_CONFIGURATION].version
        if not part.is_due(ROUTE_CONFIGURATION, version, now):
            self._coming = None
            return None
        if not all(self._is_there(name, newest) for name in table.resources.by_kind[_CLUSTERS]):
            self._coming = table
            return None
        self._coming = None
        return self._send(_ROUTES, {ROUTE_CONFIGURATION: version}, table.watermark, table)

    def _send(self, kind: ResourceKind, due: dict[str, str], as_of: Watermark, table: Table) -> Response[Table]:
        self._nonce += 1
        nonce, part = str(self._nonce), self._parts[kind]
        part.is_answered, part.pending = True, SentPart(nonce, due, as_of, table.resources.by_kind[_CLUSTERS])
        updates = tuple(name for name, version in due.items() if version != GONE)
        if kind is _CLUSTERS:
            for name in updates:  # a cluster that changed waits for its endpoints, as a new one does
                self._parts[_ENDPOINTS].forget(name)
        return Response(kind, nonce, updates, tuple(name for name, version in due.items() if version == GONE), table)

    def _as_of(self, mark: Watermark, due: Mapping[str, str], updates: Iterable[str], gone: Iterable[str]) -> Watermark:
        """The table that the proxy knows with this response. Clusters that stay are as old as the routes to them."""
        if any(name not in due for name in updates):
            return NOTHING_YET
        if any(name not in due for name in gone):
            return min(mark, self._parts[_ROUTES].acknowledged, key=number_of)
        return mark

    def _due(self, kind: ResourceKind, different: Mapping[str, str], newest: Table, now: float) -> dict[str, str]:
        part = self._parts[kind]
        due = {name: version for name, version in different.items() if part.is_due(name, version, now)}
        if kind is _CLUSTERS:
            waiting = {name for name, version in due.items() if version == GONE and self._is_routed(name, newest)}
            due = {name: version for name, version in due.items() if name not in waiting}
        if kind in (_CLUSTERS, _ENDPOINTS):
            due = {name: version for name, version in due.items() if not self._is_still_asked(name, newest)}
        return dict(list(due.items())[: part.most])

    def _is_there(self, cluster: str, newest: Table) -> bool:
        """Whether routes need not wait for a cluster: it has endpoints, or is refused, or is gone by now."""
        clusters, endpoints = self._parts[_CLUSTERS], self._parts[_ENDPOINTS]
        if cluster in clusters.refused or cluster not in newest.resources.by_kind[_CLUSTERS]:
            return True
        return cluster in clusters.versions and (cluster in endpoints.versions or cluster in endpoints.refused)

    def _is_still_asked(self, cluster: str, newest: Table) -> bool:
        """Whether the proxy may have a route to a cluster that is about to go in the newest table: none would answer.

        A proxy that refuses the routes is not waited for.
        """
        item, routes = newest.resources.by_kind[_CLUSTERS].get(cluster), self._parts[_ROUTES]
        if item is None or not item.is_left or cluster not in self._parts[_ENDPOINTS].versions:
            return False
        version = newest.resources.by_kind[_ROUTES][ROUTE_CONFIGURATION].version
        if ROUTE_CONFIGURATION in routes.refused or routes.versions.get(ROUTE_CONFIGURATION) == version:
            return False
        before = None if self._routed is None else self._routed.get(cluster)
        return before is None or not before.is_left

    def _is_routed(self, cluster: str, newest: Table) -> bool:
        """Whether the proxy may have a route to this cluster, or gets one, though the newest table has it no more."""
        routes = self._parts[_ROUTES]
        if routes.pending is not None and cluster in routes.pending.clusters:
            return True
        if self._coming is not None and cluster in self._coming.resources.by_kind[_CLUSTERS]:
            return True
        version = newest.resources.by_kind[_ROUTES][ROUTE_CONFIGURATION].version
        if routes.versions.get(ROUTE_CONFIGURATION) == version:
            return False
        return self._routed is None or cluster in self._routed
