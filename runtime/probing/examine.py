"""Examines how a replica answers: asks it as a probe does, and as callers do, and tries likely mistakes."""

import asyncio
import re
import ssl
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

import h11

from domain.replicas.diagnosis import PATIENCE_SECONDS, USUAL_PATHS, Examination, HeardAnswer, NoAnswer
from domain.revisions.health_check import HealthCheck
from domain.traffic.tls import ReplicaTls
from domain.traffic.wire import MOST_HEADER_KIB, refusal_of
from runtime.probing.http1 import AGENT, context_of, host_and_port, target_of, why_no_tls
from runtime.probing.probes import probe

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_BYTES = 1024 * 1024
_MOST_OF_A_HEAD = 2 * MOST_HEADER_KIB * 1024
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_UNKNOWN = (404, 405)
_PLAIN_TO_TLS = 400
"""The answers of TLS servers to a question in clear text."""


async def examine(  # noqa: PLR0913  (all that is known of a replica)
    address: str,
    check: HealthCheck,
    callers_host: str,
    listening: tuple[str, ...] = (),
    *,
    is_container: bool = False,
    tls: ReplicaTls | None = None,
) -> Examination:
    """Ask the replica at `address` (host:port), for some 20 s at most. Never raises, whatever it answers.

    `listening`: where its processes listen, as host:port, which tells more when nothing listens at `address`. `tls`:
    how it is asked; None: in clear text.
    """
    probed, called = await asyncio.gather(_probed(address, check, tls), _ask(address, "/", callers_host, tls))
    unknown = check.protocol == "http1" and probed.status in _UNKNOWN
    others = [path for path in USUAL_PATHS if unknown and path != check.path]
    answers = await asyncio.gather(*(_ask(address, path, check.host_header(address), tls) for path in others))
    paths: Mapping[str, HeardAnswer] = dict(zip(others, answers, strict=True))
    elsewhere = tuple(place for place in listening if place != address)
    return Examination(address, check, probed, callers_host, called, paths, elsewhere, is_container)


async def _probed(address: str, check: HealthCheck, tls: ReplicaTls | None) -> HeardAnswer:
    """Ask as a probe does, with more patience."""
    if check.protocol == "http1":
        return await _ask(address, check.path, check.host_header(address), tls)
    began = monotonic()
    answer = await probe(address, check.model_copy(update={"timeout_seconds": PATIENCE_SECONDS}), tls)
    seconds = monotonic() - began
    if answer.ok:
        return HeardAnswer(200, seconds, words=answer.detail)
    plain = await _ask(address, check.path, check.host_header(address), tls)
    match plain.no_answer:
        case None:
            return HeardAnswer(seconds=seconds, no_answer=NoAnswer.HTTP1_ALONE)
        case NoAnswer.HTTP2_ALONE:
            return HeardAnswer(503, seconds, words=answer.detail)
    return plain


async def _ask(address: str, path: str, host_name: str, tls: ReplicaTls | None) -> HeardAnswer:
    """GET `path` in HTTP/1.1 with `host_name` as Host, and read the answer to its end."""
    began = monotonic()
    try:
        secure, name = (context_of(tls, "http1"), tls.name) if tls else (None, None)
        async with asyncio.timeout(PATIENCE_SECONDS):
            host, port = host_and_port(address)
            reader, writer = await asyncio.open_connection(host, port, ssl=secure, server_hostname=name)
    except ConnectionRefusedError:
        return HeardAnswer(no_answer=NoAnswer.REFUSED)
    except OSError as error:
        why = why_no_tls(tls, error) if tls else ""
        no_answer = NoAnswer.NOT_BELIEVED if why else NoAnswer.UNREACHABLE
        return HeardAnswer(no_answer=no_answer, words=why and f"{address} {why}")
    exchange = _Asking(path, host_name, began)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await exchange.run(reader, writer)
    except TimeoutError:
        exchange.is_late = True
    finally:
        writer.transport.abort()
    answer = exchange.result()
    may_be_tls = answer.no_answer in {NoAnswer.CLOSED, NoAnswer.NOT_HTTP} or answer.status == _PLAIN_TO_TLS
    if tls is None and may_be_tls and await _speaks_tls(address):
        return HeardAnswer(no_answer=NoAnswer.TLS)
    return answer


async def _speaks_tls(address: str) -> bool:
    """Whether a handshake is answered, whatever its certificate says."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            _, writer = await asyncio.open_connection(*host_and_port(address), ssl=context)
    except OSError:  # SSLError and TimeoutError are some
        return False
    writer.transport.abort()
    return True


class _Asking:
    """One question on its connection, and what has been heard of its answer so far."""

    def __init__(self, path: str, host_name: str, began: float) -> None:
        self.is_late = False
        self._request = h11.Request(
            method="GET",
            target=target_of(path),
            headers=[("Host", host_name), ("User-Agent", AGENT), ("Accept", "*/*"), ("Connection", "close")],
        )
        self._began = began
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MOST_OF_A_HEAD)
        self._received = b""
        self._response: h11.Response | None = None
        self._seconds = 0.0
        self._body = 0
        self._is_whole = False

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Ask, and take in the answer until it has ended or breaks. Raises TimeoutError."""
        writer.write(self._http.send(self._request) or b"")
        writer.write(self._http.send(h11.EndOfMessage()) or b"")
        with suppress(ConnectionError, h11.RemoteProtocolError):
            await self._hear(reader)

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        while not self._is_whole and self._body < _MOST_BYTES:
            data = await reader.read(65536)
            self._received += data
            self._http.receive_data(data)
            self._take()
            if not data:
                return

    def _take(self) -> None:
        while True:
            event = self._http.next_event()
            match event:
                case h11.Response():
                    self._response, self._seconds = event, monotonic() - self._began
                case h11.Data():
                    self._body += len(event.data)
                case h11.EndOfMessage():
                    self._is_whole = True
                    return
                case h11.InformationalResponse():
                    continue
                case _:
                    return

    def result(self) -> HeardAnswer:
        """The answer as far as it was heard."""
        refusal = refusal_of(_head(self._received)) if self._received.startswith(b"HTTP/1.") else ""
        if self._response is None:
            return HeardAnswer(no_answer=self._why(), refusal=refusal)
        headers = {name: value.decode("ascii", "replace") for name, value in self._response.headers}
        promised = headers.get(b"content-length", "")
        is_short = not self._is_whole and promised.isdecimal() and self._body < min(int(promised), _MOST_BYTES)
        is_cut = is_short or bool(self._http.trailing_data[0])
        location = headers.get(b"location", "")[:200]
        return HeardAnswer(self._response.status_code, self._seconds, location, is_cut=is_cut, refusal=refusal)

    def _why(self) -> NoAnswer:
        if self._received[3:9] == b"\x04\x00\x00\x00\x00\x00":
            return NoAnswer.HTTP2_ALONE
        if self.is_late:
            return NoAnswer.SILENT
        return NoAnswer.NOT_HTTP if self._received else NoAnswer.CLOSED


def _head(received: bytes) -> bytes:
    """The head of the answer, without those of 1xx before it; all that came where it has no end."""
    while end := _HEAD_END.search(received):
        if received[9:10] != b"1":
            return received[: end.start()]
        received = received[end.end() :]
    return received
