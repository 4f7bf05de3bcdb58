"""A lean HTTP/1.1 replica for measurements: one asyncio protocol, standard library only.

    GET  /health            200, or 503 until STARTUP_SECONDS have passed, or always with BROKEN=health
    GET  /                  {"deployment", "revision", "route", "version"}; POST too
    GET  /slow?seconds=N    the same, N seconds later (60 at most); POST too
    POST /upload            the same, with the "bytes" and the "sha256" of what arrived

It listens on PORT of HOST (127.0.0.1), with TLS if CERTIFICATE and KEY name its files. BROKEN=start prints a message
and exits 1. FAULTS, a JSON object, says what becomes of all that is asked but /health:

    share, of       which part of the requests (1: all), of which method (left out: any), the fault befalls
    fault           reset | hang | late (500 after `after` seconds) | a status, such as 500
    takes, mean     seconds that each answer takes; or exponentially long ones, with this mean
    idle            a connection that was idle for so many seconds is closed
    away            a file: while it is there, everything is answered by 503

SIGTERM: no new connections, idle ones are closed, requests in flight are finished, exit 0. With ENDS=at-once it just
ends, as services do that never thought of it.
"""

import asyncio
import hashlib
import json
import os
import random
import signal
import ssl
import sys
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

STARTED = time.monotonic()
STARTUP_SECONDS = float(os.environ.get("STARTUP_SECONDS", "0"))
BROKEN = os.environ.get("BROKEN", "")
FAULTS: dict[str, Any] = json.loads(os.environ.get("FAULTS", "{}"))
ENDS = os.environ.get("ENDS", "")
IDENTITY = {name: os.environ.get(f"ROLLWAY_{name.upper()}", "") for name in ("deployment", "revision", "route")}
IDENTITY["version"] = os.environ.get("VERSION", "")
WHO = json.dumps(IDENTITY).encode()

_MOST_SECONDS = 60.0
_LONGEST_HEAD = 16_384


@dataclass(slots=True)
class Request:
    """One request while its body arrives; `left` is in bytes."""

    method: str
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
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio's."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._service.connections.add(self)
        self._rest()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Asyncio's."""
        self._gone = True
        self._service.connections.discard(self)
        self._service.note_end()

    def data_received(self, data: bytes) -> None:
        """Asyncio's."""
        self._unread += data
        if self._idle is not None:
            self._idle.cancel()
        self._go_on()

    def close_if_idle(self) -> None:
        """Close it, unless a request is under way."""
        if self._request is None and not self._unread and not self._answering:
            self._transport.close()

    def _rest(self) -> None:
        if "idle" in FAULTS:
            self._idle = asyncio.get_running_loop().call_later(FAULTS["idle"], self.close_if_idle)

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
            method, target, _ = lines[0].decode("latin-1").split(" ")
            length = int(headers.get(b"content-length", b"0"))
        except ValueError:
            self._send(400, b"{}", closes=True)
            return False
        if b"transfer-encoding" in headers:
            self._send(411, b"{}", closes=True)
            return False
        closes = headers.get(b"connection", b"").strip() == b"close"
        self._request = Request(method, target, length, 0, hashlib.sha256(), closes)
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
        url, closes = urlsplit(request.target), request.closes
        if url.path == "/health":
            ready = BROKEN != "health" and time.monotonic() - STARTED >= STARTUP_SECONDS
            self._send(200 if ready else 503, b'{"ok": %s}' % str(ready).lower().encode(), closes=closes)
        elif "away" in FAULTS and Path(FAULTS["away"]).exists():
            self._send(503, WHO, closes=closes)
        elif request.method in FAULTS.get("of", request.method) and random.random() < FAULTS.get("share", 0):
            self._spoil(FAULTS["fault"], closes=closes)
        else:
            mean = FAULTS.get("mean")
            seconds = random.expovariate(1 / mean) if mean else FAULTS.get("takes", 0)
            match url.path:
                case "/":
                    self._send_after(seconds, 200, WHO, closes=closes)
                case "/slow":
                    wish = min(_MOST_SECONDS, float(parse_qs(url.query).get("seconds", ["1"])[0]))
                    self._send_after(seconds + wish, 200, WHO, closes=closes)
                case "/upload":
                    body = {**IDENTITY, "bytes": request.received, "sha256": request.sha256.hexdigest()}
                    self._send_after(seconds, 200, json.dumps(body).encode(), closes=closes)
                case _:
                    self._send(404, b'{"error": "no such page"}', closes=closes)

    def _spoil(self, fault: str | int, *, closes: bool) -> None:
        match fault:
            case "reset":
                self._transport.abort()
            case "hang":
                self._answering = True
            case "late":
                self._send_after(FAULTS["after"], 500, WHO, closes=closes)
            case _:
                self._send(int(fault), WHO, closes=closes)

    def _send_after(self, seconds: float, status: int, body: bytes, *, closes: bool) -> None:
        if not seconds:
            self._send(status, body, closes=closes)
            return

        def send() -> None:
            self._answering = False
            if not self._gone:
                self._send(status, body, closes=closes)
                self._go_on()

        self._answering = True
        asyncio.get_running_loop().call_later(seconds, send)

    def _send(self, status: int, body: bytes, *, closes: bool) -> None:
        closes = closes or self._service.stopping
        ending = b"Connection: close\r\n" if closes else b""
        head = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n"
        self._transport.write(head % (status, HTTPStatus(status).phrase.encode(), len(body), ending) + body)
        if closes:
            self._transport.close()
        else:
            self._rest()


async def serve() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    loop = asyncio.get_running_loop()
    service = Service()
    asked = asyncio.Event()
    for number in () if ENDS == "at-once" else (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    host, port, tls = os.environ.get("HOST", "127.0.0.1"), int(os.environ["PORT"]), None
    if "CERTIFICATE" in os.environ:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(os.environ["CERTIFICATE"], os.environ["KEY"])
    server = await loop.create_server(lambda: Conversation(service), host, port, ssl=tls, backlog=1024)
    print(f"{IDENTITY['revision']} listens on port {port}", file=sys.stderr, flush=True)
    await asked.wait()
    server.close()
    service.stop()
    await service.empty.wait()


if __name__ == "__main__":
    if BROKEN == "start":
        sys.exit("cannot start: BROKEN=start")
    asyncio.run(serve())
