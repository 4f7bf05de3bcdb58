"""Questions in HTTP/2 without TLS, spoken from the first byte: GET, and the health service that gRPC defines.

Its messages: https://github.com/grpc/grpc/blob/master/doc/health-checking.md
"""

import re
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import H2Error

from domain.revisions.health_check import HealthCheck
from domain.text.storable import storable
from runtime.probing.http1 import AGENT, ProbeAnswer, of_status, target_of

_CONFIG = H2Configuration(client_side=True)
_STREAM = 1
_STATUS = re.compile("[1-9][0-9][0-9]")
_HTTP1 = b"HTTP/1."
_SERVICE = "grpc.health.v1.Health"
_UNCOMPRESSED, _FIELD_1 = b"\x00", 10
_SERVING = "SERVING"
_HEALTH = {
    b"\x00\x00\x00\x00\x00": "UNKNOWN",
    b"\x00\x00\x00\x00\x02\x08\x00": "UNKNOWN",
    b"\x00\x00\x00\x00\x02\x08\x01": _SERVING,
    b"\x00\x00\x00\x00\x02\x08\x02": "NOT_SERVING",
}
"""HealthCheckResponse with its length before it: field 1 is a number, which is left out when it is 0."""
_MOST_BYTES = 1024
_LONGEST_MESSAGE = 200
_NAMES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)
_CODES = {str(number): name for number, name in enumerate(_NAMES)}
"""gRPC's statuses, as trailers have them."""


class Http2Question:
    """GET `check.path` of the replica at `address`: the status of the answer. The body is not read."""

    def __init__(self, address: str, check: HealthCheck) -> None:
        self._what, self._check, self._address = check.request_line, check, address
        self._begin(check.host_header(address), (":method", "GET"), (":path", target_of(check.path)), ("accept", "*/*"))

    def _begin(self, host_name: str, *headers: tuple[str, str], body: bytes | None = None) -> None:
        self._has_heard = False
        self._http = H2Connection(_CONFIG)
        self._http.initiate_connection()
        usual = ((":scheme", "http"), (":authority", host_name), ("user-agent", AGENT))
        # HTTP/2 has its own headers before all others
        in_order = sorted((*headers, *usual), key=lambda header: not header[0].startswith(":"))
        self._http.send_headers(_STREAM, in_order, end_stream=body is None)
        if body is not None:
            self._http.send_data(_STREAM, body, end_stream=True)

    def to_send(self) -> bytes:
        """The bytes to send: at first the request, later the frames that HTTP/2 itself requires."""
        return self._http.data_to_send()

    def hear(self, data: bytes) -> ProbeAnswer | None:
        """Take in what came; the answer once it is there."""
        is_first, self._has_heard = not self._has_heard, True
        if is_first and data.startswith(_HTTP1):
            return self._failure(": the replica speaks no HTTP/2")
        try:
            events = self._http.receive_data(data)
        except H2Error:
            return self.unanswered()
        return next((answer for event in events if (answer := self._answer_to(event))), None)

    def unanswered(self) -> ProbeAnswer:
        """The result for a broken connection, or an answer that is not HTTP/2."""
        return self._failure(": the connection broke, or the answer is not HTTP/2")

    def _answer_to(self, event: Event) -> ProbeAnswer | None:
        match event:
            case ResponseReceived():
                status = _headers_of(event)[":status"]
                return (
                    of_status(self._check, self._address, int(status))
                    if _STATUS.fullmatch(status)
                    else self.unanswered()
                )
            case StreamReset() | ConnectionTerminated():
                return self.unanswered()
        return None

    def _failure(self, detail: str) -> ProbeAnswer:
        return ProbeAnswer(ok=False, detail=f"{self._what}{detail}")


class GrpcQuestion(Http2Question):
    """Whether the replica's health service answers SERVING for `check.service`, or for the whole server."""

    def __init__(self, address: str, check: HealthCheck) -> None:
        self._what, self._check, self._address = check.request_line, check, address
        self._headers: dict[str, str] = {}
        self._body = b""
        service = (check.service or "").encode()
        message = (
            bytes((_FIELD_1, len(service))) + service if service else b""
        )  # 127 bytes at most: one says the length
        self._begin(
            check.host_header(address),
            *((":method", "POST"), (":path", f"/{_SERVICE}/Check")),
            *(("content-type", "application/grpc"), ("te", "trailers")),
            body=_UNCOMPRESSED + len(message).to_bytes(4, "big") + message,
        )

    def _answer_to(self, event: Event) -> ProbeAnswer | None:
        match event:
            case ResponseReceived() | TrailersReceived():
                self._headers |= _headers_of(event)
            case DataReceived():
                self._body += event.data
                return None if len(self._body) <= _MOST_BYTES else self._no_health()
            case StreamEnded():
                return self._ended()
            case _:
                return super()._answer_to(event)
        return None

    def _ended(self) -> ProbeAnswer:
        if self._headers.get(":status") != "200":  # every answer of gRPC has it, errors too
            return self._no_health()
        match _CODES.get(self._headers.get("grpc-status", "")):
            case None:
                return self._no_health()
            case "OK":
                health = _HEALTH.get(self._body)
                return (
                    ProbeAnswer(health == _SERVING, f"{self._what} answered {health}") if health else self._no_health()
                )
            case "NOT_FOUND":
                return self._failure(" answered NOT_FOUND: the replica's health service does not know it")
            case "UNIMPLEMENTED":
                return self._failure(f" answered UNIMPLEMENTED: the replica has no {_SERVICE}")
            case code:
                message = storable(unquote(self._headers.get("grpc-message", "")))[:_LONGEST_MESSAGE]
                return self._failure(f" answered {code}: {message}" if message else f" answered {code}")

    def _no_health(self) -> ProbeAnswer:
        return self._failure(f": the answer is none of {_SERVICE}")


def _headers_of(event: ResponseReceived | TrailersReceived) -> dict[str, str]:
    """Headers or trailers as text; bytes beyond ASCII become U+FFFD."""
    return {
        bytes(name).decode("ascii", "replace"): bytes(value).decode("ascii", "replace") for name, value in event.headers
    }
