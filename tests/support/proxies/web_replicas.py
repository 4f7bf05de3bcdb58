"""Replicas for proxies to reach: HTTP servers in this process that say who they are."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests.support.proxies.own_servers import OwnServer


class Replica:
    """An HTTP server that answers with who it is and what it was asked, and counts.

    `seconds`: before it answers at all; `trickles`: between the beginning of an answer and its end; `may_end`: until it
    is set, no answer ends that has begun; `cuts`: it ends in the middle of an answer. Every
    `spoils_every`th first try, as Envoy numbers tries, is answered after `spoils_seconds`, or never where that is 0.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.served: Counter[str] = Counter()
        self.status = 200
        self.hangs_up = False
        self.seconds = 0.0
        self.trickles = 0.0
        self.spoils_every, self.spoils_seconds, self.first_tries, self.spoilt = 0, 0.0, 0, 0
        self.may_end = threading.Event()
        self.may_end.set()
        self.cuts = False
        self.server = OwnServer(self._handler())
        self.address = self.server.address
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.may_end.set()
        self.server.shutdown()
        self.server.server_close()

    def spoils(self, attempt: str) -> bool:
        self.first_tries += attempt == "1"
        found = bool(self.spoils_every and attempt == "1" and self.first_tries % self.spoils_every == 0)
        self.spoilt += found
        return found

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        replica = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self) -> None:
                size = body_size(self)
                replica.served[self.command] += 1
                said = {"replica": replica.name, "path": self.path, "host": self.headers["host"], "size": size}
                said |= {name: self.headers.get(f"x-forwarded-{name}") for name in ("prefix", "proto", "for")}
                body = json.dumps(said).encode()
                spoils = replica.spoils(self.headers.get("x-envoy-attempt-count", ""))
                time.sleep(replica.spoils_seconds if spoils else replica.seconds)
                if replica.hangs_up or (spoils and not replica.spoils_seconds):
                    self.close_connection = True
                    return
                self.send_response(replica.status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:1])
                time.sleep(replica.trickles)
                replica.may_end.wait()
                self.close_connection = replica.cuts
                if not replica.cuts:
                    self.wfile.write(body[1:])

            def __getattr__(self, name: str) -> Callable[[], None]:
                if name.startswith("do_"):
                    return self.answer
                raise AttributeError(name)

        return Handler


def body_size(request: BaseHTTPRequestHandler) -> int:
    """Read the body to its end. A proxy that still sends may not see the answer of who closes the connection."""
    if request.headers.get("transfer-encoding", "").lower() != "chunked":
        return len(request.rfile.read(int(request.headers.get("content-length", 0))))
    size = 0
    while chunk := int(request.rfile.readline() or b"0", 16):
        size += chunk
        request.rfile.read(chunk + len(b"\r\n"))
    while request.rfile.readline().strip():
        pass
    return size


@contextmanager
def replicas(*names: str) -> Iterator[list[Replica]]:
    started = [Replica(name) for name in names]
    try:
        yield started
    finally:
        for replica in started:
            replica.close()
