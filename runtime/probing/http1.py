"""Questions in HTTP/1.1: the request as bytes, the judgement of the answer, and TLS to a replica."""

import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar
from urllib.parse import quote, urlsplit

import h11

from domain.revisions.health_check import HealthCheck
from domain.traffic.tls import ReplicaTls

AGENT = "rollway-probe"
_SUCCESS = range(200, 400)
_OF_A_HOST = (400, 421)
_KEPT_IN_URLS = "/?[]@!$&'()*+,;=:%~"


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """Whether it was a success, and what happened in a few words ("GET /health answered 503").

    `is_late`: nothing was heard in time.
    """

    ok: bool
    detail: str
    is_late: bool = False


Heard = TypeVar("Heard")
Answer_co = TypeVar("Answer_co", covariant=True)
"""The answer to a question, which is never false."""


class Question(Protocol[Answer_co]):
    """One question and its answer. It does no I/O: the owner of the connection sends and receives for it."""

    def to_send(self) -> bytes:
        """The bytes to send now: at first the question."""

    def hear(self, data: bytes) -> Answer_co | None:
        """Take in what came; the answer once it is there."""

    def unanswered(self) -> Answer_co:
        """The answer when the connection ends early."""


def of_status(check: HealthCheck, address: str, status: int) -> ProbeAnswer:
    """Judge a status of HTTP. Servers that know host names answer 400, 404 or 421 to an unknown one."""
    doubt = f" to Host: {address}; health_check.host names another" if status in _OF_A_HOST and not check.host else ""
    return ProbeAnswer(status in _SUCCESS, f"{check.request_line} answered {status}{doubt}")


def host_and_port(address: str) -> tuple[str, int]:
    """Split "host:port". Raises ValueError for anything else."""
    parts = urlsplit(f"//{address}")
    if not parts.hostname or parts.netloc != address:
        raise ValueError(f"{address!r} is not host:port")
    return parts.hostname, parts.port or 80


def target_of(path: str) -> str:
    """A path as requests carry it."""
    return quote(path.partition("#")[0], safe=_KEPT_IN_URLS)


class UnknownAuthoritiesError(OSError):
    """The authorities to trust have not been read yet."""


@lru_cache(256)
def context_of(tls: ReplicaTls, protocol: str) -> ssl.SSLContext:
    """Make the context of a connection. Raises UnknownAuthoritiesError, and OpenSSL's errors about authorities."""
    if tls.ca == "":
        raise UnknownAuthoritiesError
    context = ssl.create_default_context(cadata=tls.ca)
    context.set_alpn_protocols(["http/1.1"] if protocol == "http1" else ["h2"])
    return context


def why_no_tls(tls: ReplicaTls, error: OSError) -> str:
    """Why there is no TLS to a replica; empty where TLS is not what failed."""
    match error:
        case UnknownAuthoritiesError():
            return "is not asked: nobody has read the file of upstream_tls.ca yet"
        case ssl.SSLCertVerificationError():
            why = error.verify_message.rstrip(".")
            return f"shows a certificate that is not believed for {tls.name}, as traffic.upstream_tls wants it: {why}"
        case ssl.SSLError() | ConnectionResetError():
            return "answers no TLS, which traffic.upstream_tls says that it speaks"
    return ""


_MOST_HEADER_BYTES = 100 * 1024


_SETTINGS = b"\x04\x00\x00\x00\x00\x00"
"""Type, flags and stream of the first frame of an HTTP/2 server, after three bytes of length."""


class Http1Question:
    """GET `check.path` of the replica at `address`. Raises h11.LocalProtocolError for an impossible request."""

    def __init__(self, address: str, check: HealthCheck) -> None:
        self._check, self._address = check, address
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MOST_HEADER_BYTES)
        self._outgoing = self._http.send(_request(check.host_header(address), check.path)) or b""

    def to_send(self) -> bytes:
        data, self._outgoing = self._outgoing, b""
        return data

    def hear(self, data: bytes) -> ProbeAnswer | None:
        """Only the status and the headers are waited for."""
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
        """The result for a broken connection, or an answer that is not HTTP."""
        return self._failure("the connection broke, or the answer is not HTTP")

    def _failure(self, detail: str) -> ProbeAnswer:
        return ProbeAnswer(ok=False, detail=f"{self._check.request_line}: {detail}")


@lru_cache(4096)
def _request(host_name: str, path: str) -> h11.Request:
    headers = [("Host", host_name), ("User-Agent", AGENT), ("Accept", "*/*"), ("Connection", "close")]
    return h11.Request(method="GET", target=target_of(path), headers=headers)
