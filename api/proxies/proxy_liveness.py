"""Tracks the proxies: which are alive, since when each is silent, and which ids two of them use."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, KeysView
from contextlib import contextmanager
from dataclasses import dataclass

from db.proxies.acks import SeenProxy

_FORGET_SECONDS = 120.0
_DOUBLE_SECONDS = 60.0


class ProxyLiveness:
    """The recent proxies. A proxy is alive as long as one of its streams is open."""

    def __init__(self) -> None:
        self._proxies: dict[str, SeenProxy] = {}
        self._heard: dict[str, float] = {}
        self._streams: Counter[str] = Counter()

    def hear(self, proxy: SeenProxy) -> bool:
        """Take in a sign of life; returns whether it says anything new."""
        is_news = self._proxies.get(proxy.node_id) != proxy
        self._proxies[proxy.node_id] = proxy
        self._heard[proxy.node_id] = time.monotonic()
        return is_news

    @contextmanager
    def open_stream(self, node: str) -> Iterator[None]:
        """The proxy is alive as long as this is open."""
        self._streams[node] += 1
        try:
            yield
        finally:
            self._streams[node] -= 1
            if not self._streams[node]:
                del self._streams[node]
            if node in self._heard:
                self._heard[node] = time.monotonic()

    @property
    def nodes(self) -> KeysView[str]:
        """The ids of the recent proxies of this server."""
        return self._proxies.keys()

    @property
    def live(self) -> list[SeenProxy]:
        """Proxies with an open stream, and those heard a moment ago."""
        now = time.monotonic()
        return [
            proxy
            for node, proxy in self._proxies.items()
            if self._streams[node] or now - self._heard[node] < proxy.silence_seconds
        ]

    def kind_of(self, node: str) -> str | None:
        """The kind, envoy or traefik; None for a proxy that was not heard lately."""
        proxy = self._proxies.get(node)
        return proxy.kind if proxy else None

    def heard_since(self, moment: float) -> list[SeenProxy]:
        """Proxies with an open stream, and those heard since that moment (monotonic seconds)."""
        return [proxy for node, proxy in self._proxies.items() if self._streams[node] or self._heard[node] >= moment]

    def silent(self) -> list[str]:
        """The ids of proxies that have been silent long enough to be forgotten."""
        now = time.monotonic()
        return [
            node
            for node, proxy in self._proxies.items()
            if not self._streams[node] and now - self._heard[node] > max(_FORGET_SECONDS, proxy.silence_seconds)
        ]

    def forget(self, nodes: Iterable[str]) -> None:
        """Forget these proxies; their next message counts as their first."""
        for node in nodes:
            self._heard.pop(node, None)
            self._proxies.pop(node, None)


@dataclass(eq=False, slots=True)
class _Place:
    """A stream, and the address of its proxy's statistics, as host:port."""

    address: str | None

    def is_of_one_with(self, other: "_Place") -> bool:
        return self.address is not None and self.address == other.address


class Doubles:
    """Notices two proxies with one id: a single one says nothing more on a stream that it left for a newer one.

    When two use an id, both streams continue. A message that was on its way when a stream was left is no second proxy,
    so it takes two within a minute. The two processes of a hot restart have one address, and count as one.
    """

    def __init__(self) -> None:
        self._open: dict[str, list[_Place]] = {}
        self._overlapped: dict[str, deque[float]] = {}

    @contextmanager
    def open_stream(self, node: str, stats_address: str | None = None) -> Iterator[Callable[[], None]]:
        """A stream of the proxy. Yields a function to call at each message on it."""
        this = _Place(stats_address)
        streams = self._open.setdefault(node, [])
        streams.append(this)

        def speaks() -> None:
            if streams[-1] is not this and not streams[-1].is_of_one_with(this):
                self._overlapped.setdefault(node, deque(maxlen=2)).append(time.monotonic())

        try:
            yield speaks
        finally:
            streams.remove(this)
            if not streams:
                del self._open[node]

    def are_two(self, node: str) -> bool:
        """Whether two proxies used this id within the last minute."""
        overlapped = self._overlapped.get(node, deque())
        if overlapped and time.monotonic() - overlapped[-1] > _DOUBLE_SECONDS:
            del self._overlapped[node]
            return False
        return len(overlapped) > 1 and overlapped[-1] - overlapped[0] < _DOUBLE_SECONDS
