"""Acknowledgements: the newest table that each proxy is known to have taken over in every part."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from traffic.resources import CLUSTERS, Resource, Resources, Subscription


@dataclass(frozen=True, slots=True)
class Watermark:
    """The newest table that a proxy knows. `number` counts the tables of this server; `seen`: the table's snapshot."""

    number: int
    seen: str
    version: str


class Acks:
    """Follows tables and polls. A poll that names a version acknowledges it: Envoy names what it has taken over.

    A proxy knows table j when what it holds of each subscription was that subscription's content in table j or a later
    one. So a proxy that is always one poll behind on one busy cluster still advances, and content that changed and
    changed back counts as the same. Which endpoints it must hold follows from the clusters that it acknowledged; while
    one of those has not been asked for since this server began, nothing is claimed, for it may hold something older.

    `keep`: tables that are remembered; of a proxy that holds something older nothing is claimed until it catches up.
    """

    def __init__(self, keep: int = 1024) -> None:
        self._keep = keep
        self._newest: Resources | None = None
        self._number = 0
        self._tables: OrderedDict[int, Watermark] = OrderedDict()
        self._last_in: dict[Subscription, dict[str, int]] = {}  # of versions that were replaced
        self._replaced: deque[tuple[int, Subscription, str]] = deque()  # the same, oldest first, to forget them
        self._needed: dict[str, frozenset[Subscription]] = {}  # for each version of the clusters
        self._held: dict[str, dict[Subscription, str]] = {}  # for each proxy

    def publish(self, resources: Resources, seen: str) -> Watermark:
        """One more table, newer than those before; `seen` may be newer although nothing else changed."""
        before, self._newest = self._newest, resources
        if before is not None and before is not resources:
            self._note_replaced(before.by_subscription, resources.by_subscription)
        self._number += 1
        added = self._tables[self._number] = Watermark(self._number, seen, resources.version)
        clusters = resources.by_subscription[CLUSTERS].version
        if clusters not in self._needed:
            self._needed[clusters] = frozenset(resources.by_subscription)
        self._forget_old()
        return added

    def polled(self, node: str, subscription: Subscription, version: str) -> None:
        """A proxy asks, and holds this version, "" for nothing. A proxy that holds no clusters begins anew."""
        if subscription == CLUSTERS and not version:
            self._held.pop(node, None)
        if not self._is_known(subscription):
            return
        held = self._held.setdefault(node, {})
        held[subscription] = version
        needed = self._needed.get(version) if subscription == CLUSTERS else None
        if needed is not None:
            self._held[node] = {key: held[key] for key in held if key in needed}

    def watermark(self, node: str) -> Watermark | None:
        """The newest table that this proxy knows; None when that is not known."""
        held = self._held.get(node, {})
        needed = self._needed.get(held.get(CLUSTERS, ""))
        if needed is None:
            return None
        lasts = [self._last(key, held.get(key, "")) for key in needed]
        return self._tables.get(min(lasts))

    def forget(self, nodes: Iterable[str]) -> None:
        """Forget these proxies."""
        for node in nodes:
            self._held.pop(node, None)

    def _last(self, subscription: Subscription, version: str) -> int:
        """The newest table with this content; 0 when it was in none that is remembered."""
        if self._newest is not None:
            current = self._newest.by_subscription.get(subscription)
            if current is not None and current.version == version:
                return self._number
        return self._last_in.get(subscription, {}).get(version, 0)

    def _is_known(self, subscription: Subscription) -> bool:
        current = self._newest is not None and subscription in self._newest.by_subscription
        return current or subscription in self._last_in

    def _note_replaced(self, before: Mapping[Subscription, Resource], after: Mapping[Subscription, Resource]) -> None:
        for key, old in before.items():
            if after.get(key) != old:
                self._last_in.setdefault(key, {})[old.version] = self._number
                self._replaced.append((self._number, key, old.version))

    def _forget_old(self) -> None:
        while len(self._tables) > self._keep:
            self._tables.popitem(last=False)
        oldest = next(iter(self._tables))
        while self._replaced and self._replaced[0][0] < oldest:
            number, key, version = self._replaced.popleft()
            versions = self._last_in.get(key, {})
            if versions.get(version) == number:
                del versions[version]
                if not versions:
                    del self._last_in[key]
                if key == CLUSTERS and not self._is_current(version):
                    self._needed.pop(version, None)

    def _is_current(self, clusters: str) -> bool:
        return self._newest is not None and self._newest.by_subscription[CLUSTERS].version == clusters
