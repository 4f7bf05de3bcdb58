"""A fake model server, run as a program: it loads for LOAD_SECONDS, sleeps and wakes, and answers only while awake.

As vLLM does, it calls itself healthy while it sleeps. GET /heard says which requests to sleep and to wake it has had.
"""

import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOADED_AT = time.monotonic() + float(os.environ.get("LOAD_SECONDS", "0"))
WAKE_SECONDS = float(os.environ.get("WAKE_SECONDS", "1"))
heard: list[str] = []
state = {"asleep": False}


class Handler(BaseHTTPRequestHandler):
    """One connection, which may carry many requests."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self) -> None:
        """Answer as the server is just now."""
        is_loading = time.monotonic() < LOADED_AT
        is_bad = is_loading or (self.path == "/" and state["asleep"])
        self._reply(503 if is_bad else 200)

    def do_POST(self) -> None:
        """Sleep, or wake."""
        heard.append(self.path)
        if self.path == "/wake_up":
            time.sleep(WAKE_SECONDS)
        code = 500 if os.environ.get("BROKEN") == self.path else 200
        if code == 200:
            state["asleep"] = self.path == "/sleep"
        self._reply(code)

    def _reply(self, code: int) -> None:
        body = json.dumps({"revision": os.environ["ROLLWAY_REVISION"], "heard": heard}).encode()
        self.send_response(code)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
