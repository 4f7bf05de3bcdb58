"""GET over HTTP/1.1: the status of the answer. The body is not read."""

from functools import lru_cache

import h11

from domain.revisions.health_check import HealthCheck
from runtime.probing.question import AGENT, ProbeAnswer, of_status, target_of

_MOST_HEADER_BYTES = 100 * 1024


_SETTINGS = b"\x04\x00\x00\x00\x00\x00"
"""Type, flags and stream of what a server of HTTP/2 says first, after three bytes of length."""


class Http1Question:
    """GET `check.path` of the replica at `address`. Raises h11.LocalProtocolError for what no request can carry."""

    def __init__(self, address: str, check: HealthCheck) -> None:
        self._check, self._address = check, address
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MOST_HEADER_BYTES)
        self._outgoing = self._http.send(_request(check.named(address), check.path)) or b""

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
        return of_status(self._check, self._address, event.status_code) if isinstance(event, h11.Response) else None

    def unanswered(self) -> ProbeAnswer:
        """As for an answer that is not HTTP."""
        return self._failure("the connection broke, or the answer is not HTTP")

    def _failure(self, seen: str) -> ProbeAnswer:
        return ProbeAnswer(ok=False, detail=f"{self._check.asked}: {seen}")


@lru_cache(4096)
def _request(named: str, path: str) -> h11.Request:
    headers = [("Host", named), ("User-Agent", AGENT), ("Accept", "*/*"), ("Connection", "close")]
    return h11.Request(method="GET", target=target_of(path), headers=headers)
