"""A model server in the process of a test: its health is good at once, and its first answers are slow, or bad."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.proxies.own_servers import own_server


class Model:
    """A service whose health is good at once, and whose first `cold` answers take `seconds`, or are `refusal`."""

    def __init__(self) -> None:
        self.address = ""
        self.is_well = True
        self.cold, self.seconds, self.refusal = 0, 0.0, b""
        self.requests: list[tuple[str, str, bytes]] = []
        self.at_once, self.most_at_once = 0, 0
        self.probes: Counter[str] = Counter()

    def wait(self, path: str, marked: str, body: bytes) -> bytes:
        """Take the time of a request; returns what it is refused with."""
        self.requests.append((path, marked, body))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        is_cold, self.cold = self.cold > 0, self.cold - 1
        if is_cold:
            time.sleep(self.seconds)
        self.at_once -= 1
        return self.refusal if is_cold else b""


@contextmanager
def modelling() -> Iterator[Model]:
    model = Model()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            model.probes[self.path] += 1
            self._reply(200 if model.is_well else 503, b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            refusal = model.wait(self.path, self.headers.get("x-rollway-warm-up", ""), body)
            self._reply(503 if refusal else 200, refusal)

        def _reply(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with own_server(Handler) as server:
        model.address = server.address
        yield model


def warm_up(at_most: float = 60, **request: Any) -> dict[str, Any]:
    asked = {"method": "POST", "path": "/v1/completions", "body": '{"n": 1}', "times": 3, "under_seconds": 0.3}
    return {"requests": [asked | request], "at_most_seconds": at_most}
