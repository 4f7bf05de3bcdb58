"""A small HTTP service to roll out: it says which revision it is. Standard library only.

    GET  /health          200, or 503 until STARTUP_SECONDS have passed, after POST /break, or with BROKEN=health
    GET  /                {"deployment", "revision", "route", "version"}
    GET  /slow?seconds=N  the same, N seconds later
    GET  /metrics         requests_in_flight, in Prometheus' text format
    POST /break, /mend    make the health check fail, make it pass again

BROKEN=start prints a message and exits 1. FAIL_EVERY=5: every fifth answer of / and /slow has the status 500.
SIGTERM: no new connections, requests in flight are finished, exit 0.
"""

import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

STARTED = time.monotonic()
STARTUP_SECONDS = float(os.environ.get("STARTUP_SECONDS", "0"))
IDENTITY = {name: os.environ.get(f"ROLLWAY_{name.upper()}", "") for name in ("deployment", "revision", "route")}
IDENTITY["version"] = os.environ.get("VERSION", "")
FAIL_EVERY = int(os.environ.get("FAIL_EVERY", "0"))

answers = itertools.count(1)
broken = threading.Event()
stopping = threading.Event()
requests_in_flight: set[object] = set()


def say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


@contextmanager
def in_flight() -> Iterator[None]:
    """The service does not exit while this context lasts."""
    request = object()
    requests_in_flight.add(request)
    try:
        yield
    finally:
        requests_in_flight.remove(request)


class Handler(BaseHTTPRequestHandler):
    """One connection, which may carry many requests."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave in one packet

    def do_GET(self) -> None:
        """See the table at the top."""
        url = urlsplit(self.path)
        with in_flight():
            match url.path:
                case "/health":
                    ready = not broken.is_set() and time.monotonic() - STARTED >= STARTUP_SECONDS
                    self.answer(200 if ready else 503, {"ok": ready})
                case "/slow":
                    time.sleep(float(parse_qs(url.query).get("seconds", ["1"])[0]))
                    self.say_who()
                case "/":
                    self.say_who()
                case "/metrics":
                    self.send(
                        200, "text/plain; version=0.0.4", f"requests_in_flight {len(requests_in_flight)}\n".encode()
                    )
                case _:
                    self.answer(404, {"error": f"no such page: {url.path}"})

    def do_POST(self) -> None:
        """Break or mend the health check."""
        with in_flight():
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            match self.path:
                case "/break":
                    broken.set()
                case "/mend":
                    broken.clear()
                case _:
                    return self.answer(404, {"error": f"no such page: {self.path}"})
            say("broken" if broken.is_set() else "mended")
            return self.answer(200, {"broken": broken.is_set()})

    def say_who(self) -> None:
        """Which revision this is, be it in an answer that failed."""
        fails = FAIL_EVERY and next(answers) % FAIL_EVERY == 0
        self.answer(500 if fails else 200, IDENTITY)

    def answer(self, status: int, content: Mapping[str, object]) -> None:
        self.send(status, "application/json", json.dumps(content).encode())

    def send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if stopping.is_set():
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""


class Server(ThreadingHTTPServer):
    """A thread per connection."""

    request_queue_size = 128


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    if os.environ.get("BROKEN") == "start":
        sys.exit("cannot start: BROKEN=start")
    if os.environ.get("BROKEN") == "health":
        broken.set()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    server = Server((os.environ.get("HOST", "127.0.0.1"), int(os.environ["PORT"])), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    say(f"{IDENTITY['revision']} listens on port {server.server_port}")
    stopping.wait()
    server.shutdown()
    server.server_close()
    while requests_in_flight:
        time.sleep(0.01)
    say("stopped")


if __name__ == "__main__":
    main()
