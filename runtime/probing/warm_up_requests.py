"""Sends the requests of a warm-up, `sleep` and `wake` to a replica's own address, and reads answers to their end."""

import asyncio
import os
from collections.abc import Iterator

import h11
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, Event, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import H2Error

from domain.replicas.warm_up import WarmUpAnswer
from domain.revisions.warm_start_spec import WARM_UP_HEADER, WarmUpRequest
from domain.text.storable import storable
from domain.traffic.wire import Protocol, ReplicaWire
from runtime.probing.http1 import context_of, host_and_port, why_no_tls
from runtime.probing.probes import answer_over, why_not_connected

_AGENT = "rollway-warm-up"
_KEPT_BYTES = 4096
_STREAM = 1
_StatusAndLine = tuple[int | None, str]
"""The status of an answer and the first line of its body; or None, and why no answer came."""
_BROKEN: _StatusAndLine = (None, "the connection broke, or the answer is not HTTP")


async def warm_up_answer(address: str, host_name: str, request: WarmUpRequest, wire: ReplicaWire) -> WarmUpAnswer:
    """Send the request once, by the protocol of callers, and wait for the end of its answer without a limit."""
    began = asyncio.get_running_loop().time()
    status, line = await _status_and_line(address, host_name, request, wire)
    return WarmUpAnswer(asyncio.get_running_loop().time() - began, status, storable(line))


async def _status_and_line(address: str, host_name: str, request: WarmUpRequest, wire: ReplicaWire) -> _StatusAndLine:
    question = (Http2WarmUp if wire.protocol is Protocol.HTTP2 else Http1WarmUp)(host_name, request)
    try:
        secure = context_of(wire.tls, wire.protocol.value) if wire.tls else None
        host, port = host_and_port(address)
        return await answer_over(host, port, question, secure, wire.tls.name if wire.tls else None)
    except OSError as error:
        if isinstance(error, TimeoutError):
            return None, f"{address} could not be reached: {os.strerror(error.errno or 110)}"
        why = why_no_tls(wire.tls, error) if wire.tls else ""
        return None, f"{address} {why or why_not_connected(error)}"


def _headers(host_name: str, request: WarmUpRequest) -> Iterator[tuple[str, str]]:
    """The headers without those of the framing. A header of the revision replaces the usual header."""
    usual = {"host": host_name, "user-agent": _AGENT, "accept": "*/*"}
    if request.body is not None:
        usual["content-type"] = "application/json"
    yield from (usual | {name.lower(): value for name, value in request.headers.items()}).items()
    yield WARM_UP_HEADER, "yes"


def _body_of(request: WarmUpRequest) -> bytes:
    return (request.body or "").encode()


def _first_line(body: bytes) -> str:
    lines = (line.strip() for line in body.decode(errors="replace").splitlines())
    return next((line for line in lines if line), "")


class Http1WarmUp:
    """A request in HTTP/1.1, on a connection that ends with its answer."""

    def __init__(self, host_name: str, request: WarmUpRequest) -> None:
        self._http = h11.Connection(h11.CLIENT)
        self._status: int | None = None
        self._body = b""
        body = _body_of(request)
        length = [] if request.body is None and request.method in ("GET", "HEAD") else [("content-length", len(body))]
        headers = [*_headers(host_name, request), *((name, str(value)) for name, value in length)]
        events = (
            h11.Request(method=request.method, target=request.path, headers=[*headers, ("connection", "close")]),
            *([h11.Data(data=body)] if body else []),
            h11.EndOfMessage(),
        )
        self._outgoing = b"".join(self._http.send(event) or b"" for event in events)

    def to_send(self) -> bytes:
        """The request, once."""
        data, self._outgoing = self._outgoing, b""
        return data

    def hear(self, data: bytes) -> _StatusAndLine | None:
        """Take in received bytes; returns the answer once it is complete."""
        try:
            self._http.receive_data(data)
            while (event := self._http.next_event()) is not h11.NEED_DATA:
                match event:
                    case h11.Response():
                        self._status = event.status_code
                    case h11.Data():
                        self._body = (self._body + event.data)[:_KEPT_BYTES]
                    case h11.EndOfMessage():
                        return self._status, _first_line(self._body)
                    case h11.ConnectionClosed() | h11.PAUSED:
                        return _BROKEN
        except h11.RemoteProtocolError:
            return _BROKEN
        return None

    def unanswered(self) -> _StatusAndLine:
        """The answer when the connection ends, which is the end of an answer without a length."""
        return self.hear(b"") or _BROKEN


class Http2WarmUp:
    """A request in HTTP/2, spoken from the first byte."""

    def __init__(self, host_name: str, request: WarmUpRequest) -> None:
        self._http = H2Connection(H2Configuration(client_side=True))
        self._status: int | None = None
        self._body = b""
        self._http.initiate_connection()
        headers = dict(_headers(host_name, request))
        own = ((":method", request.method), (":scheme", "http"), (":authority", headers.pop("host")))
        self._http.send_headers(
            _STREAM, [*own, (":path", request.path), *headers.items()], end_stream=request.body is None
        )
        if request.body is not None:
            self._send(_body_of(request))

    def _send(self, body: bytes) -> None:
        size = self._http.max_outbound_frame_size
        for first in range(0, len(body), size):
            self._http.send_data(_STREAM, body[first : first + size])
        self._http.end_stream(_STREAM)

    def to_send(self) -> bytes:
        """The bytes to send: first the request, later the frames that HTTP/2 itself requires."""
        return self._http.data_to_send()

    def hear(self, data: bytes) -> _StatusAndLine | None:
        """Take in received bytes; returns the answer once it is complete."""
        try:
            events = self._http.receive_data(data)
            return next((answer for event in events if (answer := self._answer_to(event))), None)
        except (H2Error, ValueError):
            return _BROKEN

    def unanswered(self) -> _StatusAndLine:
        """The answer when the connection ends early."""
        return _BROKEN

    def _answer_to(self, event: Event) -> _StatusAndLine | None:
        match event:
            case ResponseReceived():
                self._status = int(dict(event.headers)[b":status"])
            case DataReceived():
                self._body = (self._body + event.data)[:_KEPT_BYTES]
                self._http.acknowledge_received_data(event.flow_controlled_length, _STREAM)
            case StreamEnded():
                return self._status, _first_line(self._body)
            case StreamReset() | ConnectionTerminated():
                return _BROKEN
        return None
