"""Receivers of events: real HTTP servers that remember what they were sent, and refuse or hang when a test wants it."""

import json
import runpy
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from domain.outbox.targets import Target, parse_targets
from stack.home.folder import project_root
from tests.support.proxies.own_servers import own_server

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
verified = runpy.run_path(str(project_root() / "examples" / "receive_events.py"))["verified"]

Event = dict[str, Any]


@dataclass
class Receiver:
    """`status`: what it answers to an event. While `goes_on` is not set it reads requests and answers none."""

    status: Callable[[Event], int] = lambda _: 204
    goes_on: threading.Event = field(default_factory=threading.Event)
    asked: list[Event] = field(default_factory=list)
    taken: list[Event] = field(default_factory=list)
    forged: int = 0
    url: str = ""

    @property
    def target(self) -> Target:
        return parse_targets(self.line)["ci"]

    @property
    def line(self) -> str:
        """Of the file that ROLLWAY_WEBHOOKS names."""
        return f"ci = {self.url} {SECRET}\n"

    def hear(self, headers: dict[str, str], body: bytes) -> int:
        event = json.loads(body)
        self.asked.append(event)
        self.forged += not verified(SECRET, headers, body, time.time()) or headers["webhook-id"] != event["id"]
        self.goes_on.wait()
        status = self.status(event)
        if status == 204:
            self.taken.append(event)
        return status

    def versions(self, deployment: str) -> list[int]:
        """Of the deployment, in the order in which its events arrived first."""
        first = {event["id"]: event["data"]["version"] for event in self.taken if event["subject"] == deployment}
        return list(first.values())


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    receiver.goes_on.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = receiver.hear({name.lower(): value for name, value in self.headers.items()}, body)
            with suppress(OSError):  # whoever sent it has gone
                self.send_response(status)
                self.end_headers()

    with own_server(Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.port}/events?token=secret"
        try:
            yield receiver
        finally:
            receiver.goes_on.set()
