"""What a probe asks on a connection of its own, as bytes, and what the answer comes to, as HTTP/1.1 has it."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol
from urllib.parse import quote, urlsplit

import h11

from domain.revisions.health_check import HealthCheck

AGENT = "rollway-probe"
_SUCCESS = range(200, 400)
_KEPT_IN_URLS = "/?[]@!$&'()*+,;=:%~"


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """Whether it was a success, and what was seen in a few words ("GET /health answered 503")."""

    ok: bool
    detail: str


class Question(Protocol):
    """One question and its answer. It does no I/O: who holds the connection sends and hears for it."""

    def to_send(self) -> bytes:
        """Return what is to be sent now: at first the question."""

    def hear(self, data: bytes) -> ProbeAnswer | None:
        """Take in what came; the answer once it is there."""

    def unanswered(self) -> ProbeAnswer:
        """Return what it comes to when the connection ends before the answer."""


def of_status(what: str, status: int) -> ProbeAnswer:
    """Judge a status of HTTP."""
    return ProbeAnswer(status in _SUCCESS, f"{what} answered {status}")


def host_and_port(address: str) -> tuple[str, int]:
    """Split "host:port". Raises ValueError for what is no such thing."""
    parts = urlsplit(f"//{address}")
    if not parts.hostname or parts.netloc != address:
        raise ValueError(f"{address!r} is not host:port")
    return parts.hostname, parts.port or 80


def target_of(path: str) -> str:
    """A path as requests carry it."""
    return quote(path.partition("#")[0], safe=_KEPT_IN_URLS)


_MOST_HEADER_BYTES = 100 * 1024
_SETTINGS = b"\x04\x00\x00\x00\x00\x00"
"""Type, flags and stream of what a server of HTTP/2 says first, after three bytes of length."""


class Http1Question:
    """GET `check.path` of the replica at `address`. Raises h11.LocalProtocolError for what no request can carry."""

    def __init__(self, address: str, check: HealthCheck) -> None:
        self._what = check.asked
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MOST_HEADER_BYTES)
        self._outgoing = self._http.send(_request(address, check.path)) or b""

    def to_send(self) -> bytes:
        """The request, once."""
        said, self._outgoing = self._outgoing, b""
        return said

    def hear(self, data: bytes) -> ProbeAnswer | None:
        """The status and the headers are all that is waited for."""
        try:
            self._http.receive_data(data)
            event = self._http.next_event()
            while isinstance(event, h11.InformationalResponse):
                event = self._http.next_event()
        except h11.RemoteProtocolError:
            if data[3:9] == _SETTINGS:
                return self._failure("the replica speaks HTTP/2 alone: set health_check.protocol to http2 or grpc")
            return self.unanswered()
        return of_status(self._what, event.status_code) if isinstance(event, h11.Response) else None

    def unanswered(self) -> ProbeAnswer:
        """As for an answer that is not HTTP."""
        return self._failure("the connection broke, or the answer is not HTTP")

    def _failure(self, seen: str) -> ProbeAnswer:
        return ProbeAnswer(ok=False, detail=f"{self._what}: {seen}")


@lru_cache(4096)
def _request(address: str, path: str) -> h11.Request:
    headers = [("Host", address), ("User-Agent", AGENT), ("Accept", "*/*"), ("Connection", "close")]
    return h11.Request(method="GET", target=target_of(path), headers=headers)
