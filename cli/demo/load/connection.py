"""One client connection, a small HTTP/1.1 protocol on raw asyncio: one request at a time, each answer checked."""

import asyncio
import json
from collections.abc import Callable
from typing import cast

from cli.demo.load.mix import PlannedRequest
from cli.demo.load.tally import Exchange, FailureKind

_OK = 200
_LONGEST_DETAIL = 200

Answered = Callable[["Connection", Exchange], None]
Failed = Callable[[Exchange, FailureKind, str], None]


class Connection(asyncio.Protocol):
    """Sends one request after the other, and calls `answered` or `failed` once for each."""

    def __init__(self, on_answer: Answered, failed: Failed) -> None:
        self._answered = on_answer
        self._failed = failed
        self._transport: asyncio.Transport
        self._exchange: Exchange | None = None
        self._received = b""
        self._needed: int | None = None
        self._head = b""
        self._unsent: asyncio.TimerHandle | None = None
        self.usable = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.usable = True

    def send(self, exchange: Exchange, now: float) -> None:
        """Send a request; its body follows piece by piece."""
        planned = exchange.planned
        self._exchange, self._received, self._needed = exchange, b"", None
        exchange.started = now
        self._transport.write(planned.head)
        if planned.body:
            self._send_piece(planned, 0)

    def give_up(self, kind: FailureKind, detail: str) -> None:
        """End the request that is under way, and the connection with it."""
        if self._exchange is not None:
            self._end_with(kind, detail)

    def close(self) -> None:
        """Close it, without a word about the request that is under way."""
        self._exchange = None
        self.usable = False
        if self._unsent is not None:
            self._unsent.cancel()
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received = self._received + data if self._received else data
        if self._exchange is None:
            self.close()  # an answer to no request
            return
        if self._needed is None:
            self._read_head()
        if self._needed is not None and len(self._received) >= self._needed:
            self._judge(self._exchange)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the other side has closed it."""
        self.usable = False
        if self._exchange is None:
            return
        how = f"{type(exc).__name__}: {exc}" if exc else "closed by the other side"
        if self._received or self._needed is not None:
            self._end_with(FailureKind.TRUNCATED, f"{how} after {len(self._received)} of {self._needed} bytes")
        else:
            self._end_with(FailureKind.RESET, how)

    def _read_head(self) -> None:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        self._head, self._received = self._received[:end].lower(), self._received[end + 4 :]
        at = self._head.find(b"\r\ncontent-length:")
        if at < 0:
            self._end_with(FailureKind.WRONG_BODY, "an answer without Content-Length")
            return
        self._needed = int(self._head[at + 17 :].partition(b"\r")[0])

    def _judge(self, exchange: Exchange) -> None:
        exchange.status = int(self._head[9:12])
        exchange.revision, wrong = _parse(self._received, exchange.planned)
        if exchange.status != _OK:
            self._end_with(FailureKind.STATUS, f"{exchange.status} {self._received.decode(errors='replace')}")
            return
        if wrong:
            self._end_with(FailureKind.WRONG_BODY, wrong)
            return
        if len(self._received) != self._needed or self._unsent is not None or b"\r\nconnection: close" in self._head:
            self.usable = False
        self._exchange = None
        if exchange.planned.closes or not self.usable:
            self.close()
        self._answered(self, exchange)

    def _end_with(self, kind: FailureKind, detail: str) -> None:
        exchange = self._exchange
        self.close()
        if exchange is not None:
            self._failed(exchange, kind, " ".join(detail.split())[:_LONGEST_DETAIL])

    def _send_piece(self, planned: PlannedRequest, number: int) -> None:
        self._unsent = None
        size = -(-len(planned.body) // planned.pieces)
        self._transport.write(planned.body[number * size : (number + 1) * size])
        if number + 1 < planned.pieces:
            pause = planned.takes / (planned.pieces - 1)
            loop = asyncio.get_running_loop()
            self._unsent = loop.call_later(pause, self._send_piece, planned, number + 1)


def _parse(body: bytes, planned: PlannedRequest) -> tuple[str, str]:
    """The revision that answered, and the fault of the answer, if any."""
    try:
        document = json.loads(body)
        revision = str(document["revision"])
    except (ValueError, KeyError, TypeError):
        return "", f"no JSON that names a revision: {body[:80]!r}"
    if planned.sha256 and (document.get("bytes"), document.get("sha256")) != (len(planned.body), planned.sha256):
        size, sha256 = document.get("bytes"), document.get("sha256")
        return "", f"{size} of {len(planned.body)} bytes arrived, sha256 {sha256}"
    return revision, ""
