"""Which proxies poll this server, since when each is silent, and which ids two of them use."""

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, KeysView
from contextlib import contextmanager

from db.proxies.acks import SeenProxy

_FORGET_SECONDS = 120.0
_DOUBLE_SECONDS = 60.0


class Presence:
    """The proxies that polled lately. A proxy is there as long as one of its polls is open."""

    def __init__(self) -> None:
        self._proxies: dict[str, SeenProxy] = {}
        self._heard: dict[str, float] = {}
        self._polls: Counter[str] = Counter()

    def hear(self, proxy: SeenProxy) -> bool:
        """A proxy polls; whether that says more than was known of it."""
        is_news = self._proxies.get(proxy.node_id) != proxy
        self._proxies[proxy.node_id] = proxy
        self._heard[proxy.node_id] = time.monotonic()
        return is_news

    @contextmanager
    def open_poll(self, node: str) -> Iterator[None]:
        """The proxy is there as long as this is open."""
        self._polls[node] += 1
        try:
            yield
        finally:
            self._polls[node] -= 1
            if not self._polls[node]:
                del self._polls[node]

    @property
    def nodes(self) -> KeysView[str]:
        """The ids of the proxies that polled this server lately."""
        return self._proxies.keys()

    @property
    def live(self) -> list[SeenProxy]:
        """Proxies with an open poll, and those that polled a moment ago."""
        now = time.monotonic()
        return [
            proxy
            for node, proxy in self._proxies.items()
            if self._polls[node] or now - self._heard[node] < proxy.silence_seconds
        ]

    def kind_of(self, node: str) -> str | None:
        """How it polls: envoy or traefik; None for one that has not polled lately."""
        proxy = self._proxies.get(node)
        return proxy.kind if proxy else None

    def heard_since(self, moment: float) -> list[SeenProxy]:
        """Proxies with an open poll, and those that polled since that moment (monotonic seconds)."""
        return [proxy for node, proxy in self._proxies.items() if self._polls[node] or self._heard[node] >= moment]

    def silent(self) -> list[str]:
        """The ids of those that were silent for so long that they may be forgotten."""
        now = time.monotonic()
        return [
            node
            for node, proxy in self._proxies.items()
            if not self._polls[node] and now - self._heard[node] > max(_FORGET_SECONDS, proxy.silence_seconds)
        ]

    def forget(self, nodes: Iterable[str]) -> None:
        """Forget these proxies; the next poll of one is its first."""
        for node in nodes:
            self._heard.pop(node, None)
            self._proxies.pop(node, None)


class Doubles:
    """Notices two proxies with one id, by polls that overlap.

    A proxy has one poll of its clusters open at a time. When it vanishes without a word and comes back, the poll that
    it left behind is overlapped, once. When two use its id, each overlaps the poll of the other, in turn.
    """

    def __init__(self) -> None:
        self._open: dict[str, dict[object, bool]] = {}
        self._overlapped: dict[str, deque[float]] = {}

    @contextmanager
    def poll(self, node: str) -> Iterator[None]:
        """A poll of its clusters."""
        this, now = object(), time.monotonic()
        polls = self._open.setdefault(node, {})
        for poll in [poll for poll, is_overlapped in polls.items() if not is_overlapped]:
            polls[poll] = True
            self._overlapped.setdefault(node, deque(maxlen=2)).append(now)
        polls[this] = False
        try:
            yield
        finally:
            del polls[this]
            if not polls:
                del self._open[node]

    def are_two(self, node: str) -> bool:
        """Whether two proxies used this id within the last minute."""
        overlapped = self._overlapped.get(node, deque())
        if overlapped and time.monotonic() - overlapped[-1] > _DOUBLE_SECONDS:
            del self._overlapped[node]
            return False
        return len(overlapped) > 1 and overlapped[-1] - overlapped[0] < _DOUBLE_SECONDS
