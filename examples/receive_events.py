"""Receive Rollway's events with nothing but Python: verify each, print it once, say that it arrived.

    ROLLWAY_WEBHOOK_SECRET=whsec_... python receive_events.py [PORT]

The same secret stands in the file that ROLLWAY_WEBHOOKS names for the workers.
"""

import base64
import hmac
import json
import os
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_SECONDS = 300


def verified(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Whether it was signed with this secret, and not long ago: an old message may have been recorded by a stranger."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "0")
    proof = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    expected = f"v1,{base64.b64encode(proof).decode()}"
    signatures = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(expected, signature) for signature in signatures) and (
        abs(now - int(timestamp)) <= TOLERANCE_SECONDS
    )


class Receiver(BaseHTTPRequestHandler):
    """Answers 401 to strangers, and 204 to every event, those that it had before too."""

    seen: set[str] = set()  # noqa: RUF012  (of all requests; a real service would keep it in its database)

    def do_POST(self) -> None:
        """One event. What takes long is done after the answer."""
        body = self.rfile.read(int(self.headers["content-length"]))
        if not verified(os.environ["ROLLWAY_WEBHOOK_SECRET"], dict(self.headers), body, time.time()):
            return self._answer(401)
        event = json.loads(body)
        if event["id"] not in self.seen:  # an answer may have been lost, and then it comes again
            self.seen.add(event["id"])
            print(event["sequence"], event["type"], event["subject"], event["data"]["sentence"], flush=True)
        return self._answer(204)

    def log_message(self, *_: object) -> None:
        """Say nothing about requests: the events are printed."""

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9000), Receiver).serve_forever()
