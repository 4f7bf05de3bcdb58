"""Callers of one deployment through several proxies, who ask on and on; each request is counted for its proxy."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from threading import Event

from tests.support.stack.waiting import eventually

_CALLERS, _PAUSE_SECONDS, _PATIENCE_SECONDS = 2, 0.1, 30.0
_KINDS = (("GET", "/"), ("GET", "/"), ("POST", "/mend"))
"""A POST is sent once, whatever becomes of it: no proxy may ask another replica."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A request that was not answered with 200: when it was sent and when that was known, by the monotonic clock."""

    proxy: str
    method: str
    sent: float
    known: float
    why: str


@dataclass
class Load:
    """`proxies`: where each listens, as host:port, by its name."""

    proxies: Mapping[str, str]
    host: str
    answered: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: list[Missed] = field(default_factory=list)
    slowest: dict[str, float] = field(default_factory=dict)
    over: Event = field(default_factory=Event)

    def ask(self, proxy: str, method: str, path: str) -> None:
        """Send a request, on a connection of its own, and count what became of it."""
        sent = time.monotonic()
        why = self.answer(proxy, method, path)
        known = time.monotonic()
        if why == "200":
            self.answered[proxy, method] += 1
            self.slowest[proxy] = max(self.slowest.get(proxy, 0.0), known - sent)
        else:
            self.missed.append(Missed(proxy, method, sent, known, why))

    def answer(self, proxy: str, method: str, path: str) -> str:
        """The status, or what went wrong."""
        connection = HTTPConnection(self.proxies[proxy], timeout=_PATIENCE_SECONDS)
        try:
            connection.request(method, path, headers={"Host": self.host})
            answer = connection.getresponse()
            answer.read()
        except (OSError, HTTPException) as error:
            return repr(error)
        else:
            return str(answer.status)
        finally:
            connection.close()

    def ask_on(self, proxy: str) -> None:
        """Until it is over."""
        while True:
            for method, path in _KINDS:
                if self.over.wait(_PAUSE_SECONDS):
                    return
                self.ask(proxy, method, path)


@contextmanager
def under_load(proxies: Mapping[str, str], host: str) -> Iterator[Load]:
    """Some 15 requests a second through each proxy, until the block ends."""
    load = Load(proxies, host)
    for proxy in proxies:
        eventually(lambda: load.answer(proxy, "GET", "/") == "200", what=f"a route of {proxy}")  # noqa: B023
    with ThreadPoolExecutor(_CALLERS * len(proxies)) as pool:
        try:
            running = [pool.submit(load.ask_on, proxy) for proxy in proxies for _ in range(_CALLERS)]
            yield load
        finally:
            load.over.set()
        for each in running:
            each.result()
