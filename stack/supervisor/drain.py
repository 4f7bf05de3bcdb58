"""Envoy before the stack is stopped: it takes no new requests, and those in flight get their time."""

import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from stack.home.folder import Home
from stack.home.ports import HOST, connected
from stack.parts.envoy import DRAIN_SECONDS

_PATIENCE = 10.0
_POLL = 0.1
_ACTIVE = "http.rollway.downstream_rq_active"


def drain_proxy(home: Home, say: Callable[[str], None]) -> None:
    """Return when Envoy has closed its port and answered what it had accepted, after 11 s at most.

    Nothing happens when it does not run here.
    """
    admin = home.envoy_admin
    with suppress(OSError, HTTPException):
        _ask(admin, "POST", "/drain_listeners?graceful")
        say("traffic is let out")
        time.sleep(DRAIN_SECONDS)
        deadline = time.monotonic() + _PATIENCE
        while (active := _active(admin)) and time.monotonic() < deadline:
            time.sleep(_POLL)
        if active:
            say(f"{active} requests are still in flight after {_PATIENCE:g} s and will be cut")


def _active(admin: Path) -> int:
    """The requests that Envoy has not answered yet."""
    answer = _ask(admin, "GET", f"/stats?filter=^{_ACTIVE}$")
    return int(answer.rpartition(":")[2] or 0)


def _ask(admin: Path, method: str, path: str) -> str:
    connection = HTTPConnection(HOST)
    try:
        connection.sock = connected(admin, timeout=2)
        connection.request(method, path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()
