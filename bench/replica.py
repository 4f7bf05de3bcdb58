"""A lean HTTP/1.1 replica for measurements: one asyncio protocol, standard library only.

    GET  /health            200, or 503 until STARTUP_SECONDS have passed, or always with BROKEN=health
    GET  /                  {"deployment", "revision", "route", "version"}
    GET  /slow?seconds=N    the same, N seconds later (60 at most); POST too
    POST /upload            the same, with the "bytes" and the "sha256" of what arrived

It listens on PORT of HOST (127.0.0.1). BROKEN=start prints a message and exits 1; BROKEN=answers fails all but /health.
SIGTERM: no new connections, idle ones are closed, requests in flight are finished, exit 0. With ENDS=at-once it just
ends, as services do that never thought of it.
"""

import asyncio
import hashlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

STARTED = time.monotonic()
STARTUP_SECONDS = float(os.environ.get("STARTUP_SECONDS", "0"))
BROKEN = os.environ.get("BROKEN", "")
ENDS = os.environ.get("ENDS", "")
IDENTITY = {name: os.environ.get(f"ROLLWAY_{name.upper()}", "") for name in ("deployment", "revision", "route")}
IDENTITY["version"] = os.environ.get("VERSION", "")
WHO = json.dumps(IDENTITY).encode()

_MOST_SECONDS = 60.0
_LONGEST_HEAD = 16_384
_REASONS = {200: b"OK", 400: b"Bad Request", 404: b"Not Found", 411: b"Length Required", 500: b"Failed", 503: b"Away"}
_STATUS = 500 if BROKEN == "answers" else 200


@dataclass(slots=True)
class Request:
    """One request while its body arrives; `left` is in bytes."""

    method: bytes
    target: str
    left: int
    received: int
    sha256: "hashlib._Hash"
    closes: bool


class Service:
    """What all connections share: who is connected, and whether the end was asked for."""

    def __init__(self) -> None:
        self.connections: set[Conversation] = set()
        self.stopping = False
        self.empty = asyncio.Event()

    def stop(self) -> None:
        """Close what is idle; each other connection closes itself after its answer."""
        self.stopping = True
        for connection in list(self.connections):
            connection.close_if_idle()
        self.note_end()

    def note_end(self) -> None:
        """After a connection has gone."""
        if self.stopping and not self.connections:
            self.empty.set()


class Conversation(asyncio.Protocol):
    """One connection: requests one after the other."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._transport: asyncio.Transport
        self._unread = bytearray()
        self._request: Request | None = None
        self._answering = False
        self._gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio's."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._service.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Asyncio's."""
        self._gone = True
        self._service.connections.discard(self)
        self._service.note_end()

    def data_received(self, data: bytes) -> None:
        """Asyncio's."""
        self._unread += data
        self._go_on()

    def close_if_idle(self) -> None:
        """Close it, unless a request is under way."""
        if self._request is None and not self._unread and not self._answering:
            self._transport.close()

    def _go_on(self) -> None:
        while self._unread and not self._answering and not self._gone:
            if self._request is None and not self._read_head():
                return
            if self._request is not None and self._read_body(self._request):
                self._answer(self._request)

    def _read_head(self) -> bool:
        """Whether the whole head has arrived."""
        end = self._unread.find(b"\r\n\r\n")
        if end < 0:
            if len(self._unread) > _LONGEST_HEAD:
                self._transport.abort()
            return False
        lines = bytes(self._unread[:end]).split(b"\r\n")
        del self._unread[: end + 4]
        headers = dict(line.lower().split(b":", 1) for line in lines[1:] if b":" in line)
        try:
            method, target, _ = lines[0].split(b" ")
            length = int(headers.get(b"content-length", b"0"))
        except ValueError:
            self._send(400, b"{}", closes=True)
            return False
        if b"transfer-encoding" in headers:
            self._send(411, b"{}", closes=True)
            return False
        closes = headers.get(b"connection", b"").strip() == b"close"
        self._request = Request(method, target.decode("latin-1"), length, 0, hashlib.sha256(), closes)
        if not length:
            self._answer(self._request)
        return True

    def _read_body(self, request: Request) -> bool:
        """Whether the whole body has arrived."""
        piece = self._unread[: request.left]
        del self._unread[: request.left]
        request.sha256.update(piece)
        request.received += len(piece)
        request.left -= len(piece)
        return request.left == 0

    def _answer(self, request: Request) -> None:
        self._request = None
        url = urlsplit(request.target)
        match url.path:
            case "/":
                self._send(_STATUS, WHO, closes=request.closes)
            case "/health":
                ready = BROKEN != "health" and time.monotonic() - STARTED >= STARTUP_SECONDS
                self._send(200 if ready else 503, b'{"ok": %s}' % str(ready).lower().encode(), closes=request.closes)
            case "/slow":
                seconds = min(_MOST_SECONDS, float(parse_qs(url.query).get("seconds", ["1"])[0]))
                self._answering = True
                asyncio.get_running_loop().call_later(seconds, self._send_late, request.closes)
            case "/upload":
                got = {**IDENTITY, "bytes": request.received, "sha256": request.sha256.hexdigest()}
                self._send(_STATUS, json.dumps(got).encode(), closes=request.closes)
            case _:
                self._send(404, b'{"error": "no such page"}', closes=request.closes)

    def _send_late(self, closes: bool) -> None:  # noqa: FBT001  (call_later passes no keywords)
        self._answering = False
        if not self._gone:
            self._send(_STATUS, WHO, closes=closes)
            self._go_on()

    def _send(self, status: int, body: bytes, *, closes: bool) -> None:
        closes = closes or self._service.stopping
        ending = b"Connection: close\r\n" if closes else b""
        head = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n"
        self._transport.write(head % (status, _REASONS[status], len(body), ending) + body)
        if closes:
            self._transport.close()


async def serve() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    loop = asyncio.get_running_loop()
    service = Service()
    asked = asyncio.Event()
    for number in () if ENDS == "at-once" else (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    host, port = os.environ.get("HOST", "127.0.0.1"), int(os.environ["PORT"])
    server = await loop.create_server(lambda: Conversation(service), host, port, backlog=1024)
    print(f"{IDENTITY['revision']} listens on {host}:{port}", file=sys.stderr, flush=True)
    await asked.wait()
    server.close()
    service.stop()
    await service.empty.wait()


if __name__ == "__main__":
    if BROKEN == "start":
        sys.exit("cannot start: BROKEN=start")
    asyncio.run(serve())
