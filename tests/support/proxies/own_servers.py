"""TCP and HTTP servers in the process of a test, a thread for each connection, on a free port of this machine."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any


class OwnServer(ThreadingTCPServer):
    """Its threads may outlive their test, and write nothing into the next one's output when their callers hang up.

    `handler` may say nothing about its requests: http.server writes each into standard error.
    """

    allow_reuse_address = True
    daemon_threads, block_on_close = True, False
    request_queue_size = 128

    def __init__(self, handler: type[BaseRequestHandler], port: int = 0) -> None:
        if issubclass(handler, BaseHTTPRequestHandler):
            handler = type(handler.__name__, (handler,), {"log_message": lambda *_: None})
        super().__init__(("127.0.0.1", port), handler)
        self.port: int = self.server_address[1]
        self.address = f"127.0.0.1:{self.port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def own_server(handler: type[BaseRequestHandler], port: int = 0) -> Iterator[OwnServer]:
    """One that listens. At the end of the block it takes no more requests; those that hang are not waited for."""
    with OwnServer(handler, port) as server, taking_requests(server):
        yield server


@contextmanager
def taking_requests(server: OwnServer) -> Iterator[None]:
    """Take requests until the end of the block."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
