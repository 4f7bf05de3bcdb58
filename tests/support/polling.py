"""A proxy that polls by hand."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from uuid import uuid4

import httpx

from domain.traffic.nodes import token_of
from tests.support import plain_http
from tests.support.asking import KEY, page
from tests.support.server_process import Process


class Node:
    """A proxy that polls by hand."""

    def __init__(self, api: Process) -> None:
        self.id = f"node-{uuid4().hex[:6]}"
        self.api = api
        self.held: dict[str, str] = {}

    def poll(self, kind: str, *names: str, version: str | None = None, timeout: float = 25) -> dict[str, Any] | None:
        """One poll with what it holds, unless told otherwise; None for nothing new. It does not take it over."""
        asked = {
            "node": {"id": self.id, "metadata": {"rollway_token": token_of(self.id, KEY)}},
            "resource_names": list(names),
            "version_info": self.held.get("/".join((kind, *names)), "") if version is None else version,
        }
        answer = plain_http.post(f"{self.api.url}/v3/discovery:{kind}", json=asked, timeout=timeout)
        assert answer.status_code in (200, 304), answer.text
        return answer.json() if answer.status_code == 200 else None

    def acknowledge(self, kind: str, *names: str) -> None:
        """Poll with what it holds, and hang up soon."""
        with suppress(httpx.ReadTimeout):
            assert self.poll(kind, *names, timeout=0.3) is None

    def take(self, kind: str, *names: str) -> dict[str, Any]:
        """Poll, and take over what comes."""
        answer = self.poll(kind, *names)
        assert answer is not None
        self.held["/".join((kind, *names))] = answer["version_info"]
        return answer


def in_background(threads: ThreadPoolExecutor, node: Node, kind: str, *names: str) -> Future[dict[str, Any] | None]:
    """A poll that is held until the test goes on."""
    made = threads.submit(node.poll, kind, *names)
    time.sleep(0.2)
    assert not made.done()
    return made


def live_servers(api: Process, name: str) -> int:
    """How many replicas the server tells of; none before it has heard of the deployment."""
    services = {service["name"]: service for service in page(api.url, "/v1/traffic").json()["services"]}
    return len(services[name]["live"]) if name in services else 0
