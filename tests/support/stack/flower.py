"""Flower beside a fleet."""

from stack.parts.processes import FLOWER_OPTIONS
from tests.support.proxies import plain_http
from tests.support.stack.ports import free_port
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually


def start_flower(fleet: Fleet) -> str:
    """As `rollway up` starts it, but it lets everybody ask its API; returns its address."""
    port = free_port()
    options = ["--address=127.0.0.1", f"--port={port}", *FLOWER_OPTIONS]
    fleet.start("flower", ["flower", *options], FLOWER_UNAUTHENTICATED_API="yes")
    address = f"http://127.0.0.1:{port}"
    eventually(lambda: plain_http.get(f"{address}/healthcheck").is_success, what="Flower to answer")
    return address
