"""A webhook of another system, and replicas asked for there."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any
from uuid import UUID, uuid4

from domain.revisions.revision import RevisionSpec
from runtime.protocol import ReplicaRequest
from tests.support.proxies.own_servers import own_server


class Webhook:
    """Another system: it keeps what it was asked and answers with `status` and `text`, once it may.

    With `drip_seconds` it answers a byte each time, from the status line on, and never comes to an end.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.status, self.text = 202, ""
        self.answers = threading.Event()
        self.answers.set()
        self.drip_seconds = 0.0
        self.url = ""


@contextmanager
def serving() -> Iterator[Webhook]:
    hook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            hook.keys.append(self.headers["Idempotency-Key"])
            hook.answers.wait(10)
            if hook.drip_seconds:
                self.drip(hook.drip_seconds)
                return
            self.send_response(hook.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(hook.text.encode())

        def drip(self, seconds: float) -> None:
            with suppress(OSError):  # whoever asked has gone
                for byte in b"HTTP/1.1 200 OK\r\nX-Never: " + b"e" * 10_000:
                    self.wfile.write(bytes([byte]))
                    time.sleep(seconds)

    with own_server(Handler) as server:
        hook.url = f"http://user:secret@127.0.0.1:{server.port}/replicas?token=secret"
        try:
            yield hook
        finally:
            hook.answers.set()


def asked_at(external: dict[str, Any], route_id: UUID | None = None) -> ReplicaRequest:
    spec = RevisionSpec.model_validate({"runtime": "external", "external": external, "env": {"VERSION": "7"}})
    return ReplicaRequest(route_id or uuid4(), "web", "web-12345678", spec)


def document(request: ReplicaRequest, action: str) -> dict[str, Any]:
    return {
        "action": action,
        "route_id": str(request.route_id),
        "deployment": "web",
        "revision": "web-12345678",
        "env": {"VERSION": "7"},
        "request_id": f"{request.route_id}-{action}",
    }
