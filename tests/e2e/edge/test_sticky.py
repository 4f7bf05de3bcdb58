"""Callers who stay with a replica, while all replicas are replaced: each moves once, to the new one."""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.proxies import plain_http
from tests.support.stack.stack import ROOT, Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

N, CALLERS = 4, 24
POLICY = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
SPEC: dict[str, Any] = {
    "command": [sys.executable, str(ROOT / "examples" / "http_service.py")],
    "health_check": {"path": "/health", "interval_seconds": 0.5, "failure_threshold": 100},
}
"""A busy machine makes no replica ill here: its callers would go elsewhere meanwhile, as they should."""


def test_each_caller_moves_once_while_all_replicas_are_replaced(running_fleet: Fleet, envoy_url: str) -> None:
    fleet, name, url = running_fleet, "stays", f"{envoy_url}/stays/"
    fleet.ask("create_deployment", deployment=name, desired_replicas=N, policy=POLICY)
    for version in ("1", "2"):
        fleet.ask("add_revision", deployment=name, name=f"v{version}", spec={**SPEC, "env": {"VERSION": version}})
    fleet.ask("set_traffic", deployment=name, hedge_after_seconds=None, sticky={"cookie": "rollway-replica"})
    fleet.activate(name, "v1")
    fleet.wait_until_ready(name, "v1", N)
    clients = [plain_http.Client(timeout=300) for _ in range(CALLERS)]
    eventually(lambda: {plain_http.get(url).json()["route"] for _ in range(CALLERS)} == routes(fleet, name))
    met: list[list[tuple[str, str]]] = [[] for _ in clients]

    def ask(caller: int) -> str:
        answer = clients[caller].get(url)
        assert answer.status_code == 200
        said = answer.json()
        if met[caller][-1:] != [(said["version"], said["route"])]:
            met[caller].append((said["version"], said["route"]))
        return str(said["version"])

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, range(CALLERS))) == {"1"}
        fleet.activate(name, "v2")
        eventually(lambda: set(pool.map(ask, range(CALLERS))) == {"2"}, 120, "everybody is at a new replica")
    assert [[version for version, _ in each] for each in met] == [["1", "2"]] * CALLERS
    heirs = {(before, after) for (_, before), (_, after) in met}
    assert len(heirs) == len({before for before, _ in heirs}), "whose callers were together are so again"
    for client in clients:
        client.close()


def routes(fleet: Fleet, name: str) -> set[str]:
    return {str(route["id"]) for route in fleet.routes(name, "healthy")}
