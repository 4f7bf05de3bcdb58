"""A service that is healthy at once, and slow at first, as one that compiles what it is asked: run as a program.

The first COLD answers to / take COLD_SECONDS each, all others 0 s, or SECONDS. GET /asked says how many were warm-ups.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COLD_SECONDS, SECONDS = float(os.environ.get("COLD_SECONDS", "5")), float(os.environ.get("SECONDS", "0"))
lock = threading.Lock()
state = {"cold": int(os.environ.get("COLD", "0")), "warm-ups": 0}


class Handler(BaseHTTPRequestHandler):
    """One connection, which may carry many requests."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self) -> None:
        """Answer with the number of warm-ups so far."""
        if self.path == "/":
            with lock:
                is_cold, state["cold"] = state["cold"] > 0, state["cold"] - 1
                state["warm-ups"] += self.headers.get("x-rollway-warm-up") == "yes"
            time.sleep(COLD_SECONDS if is_cold else SECONDS)
        body = json.dumps({"revision": os.environ["ROLLWAY_REVISION"], "asked": state["warm-ups"]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
    sys.exit(0)
