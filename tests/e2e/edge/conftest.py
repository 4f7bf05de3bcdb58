"""A fleet behind an Envoy that listens for HTTPS too, and an authority that finds it by every name."""

import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.certificates.authorities import ask
from tests.support.certificates.pebble import Pebble
from tests.support.proxies.edge import api_process, envoy_process
from tests.support.rows.deployments import read, write
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process
from tests.support.stack.stack import ROOT, Fleet
from tests.support.stack.waiting import eventually

KEY = "c" * 32
SPEC = {
    "command": [sys.executable, str(ROOT / "examples" / "http_service.py")],
    "health_check": {"path": "/", "interval_seconds": 0.5},
}


@dataclass
class Front:
    """A fleet with a worker, an Envoy that listens for HTTPS too, and an authority that finds it by every name."""

    fleet: Fleet
    api: Process
    envoy: Process
    pebble: Pebble
    tls_port: int

    def deploy(self, name: str, **traffic: Any) -> None:
        self.fleet.ask("create_deployment", deployment=name, desired_replicas=1)
        self.fleet.ask("add_revision", deployment=name, name="v1", spec=SPEC)
        self.fleet.ask("activate_revision", deployment=name, revision="v1")
        eventually(lambda: self.fleet.state(name)["lifecycle"] == "ready", what=f"{name} is ready")
        self.fleet.ask("set_traffic", deployment=name, **traffic)

    def start_worker(self, name: str, **own: str) -> None:
        self.fleet.start_workers(name, ROLLWAY_CERTIFICATE_KEY=KEY, **self.pebble.environment, **own)

    def rows(self) -> list[dict[str, Any]]:
        return read(self.fleet.engine, "SELECT * FROM certificates ORDER BY kind, name")

    def has(self, name: str = "chain") -> bool:
        return any(row[name] is not None for row in self.rows())

    def now(self) -> None:
        """Let pauses and leases be over, as they are some time later, where there is no certificate yet."""
        write(self.fleet.engine, "UPDATE certificates SET due_at = now(), leased_until = NULL WHERE chain IS NULL")

    def renew(self) -> None:
        """Let two thirds of its life be over."""
        write(self.fleet.engine, "UPDATE certificates SET due_at = now()")

    def complains(self, why: str) -> bool:
        return why in (self.rows()[0]["fault"] or "")

    def answers(self, host: str, context: ssl.SSLContext) -> bool:
        try:
            return ask(f"https://{host}/", context, self.tls_port).status_code == 200
        except httpx.TransportError:
            return False


@pytest.fixture
def front(fleet: Fleet, tmp_path: Path) -> Iterator[Front]:
    tls_port = free_port()
    own = {"ROLLWAY_TLS_PORT": str(tls_port), "ROLLWAY_TLS_HOST": "127.0.0.1", "ROLLWAY_CERTIFICATE_KEY": KEY}
    api = api_process(fleet.database, fleet.environment["REDIS_URL"], tmp_path, **own)
    envoy = envoy_process(api, tmp_path)
    pebble = Pebble.beside(tmp_path / "pebble", envoy.port, tls_port)
    made = Front(fleet, api, envoy, pebble, tls_port)
    try:
        pebble.start()
        api.start()
        envoy.start()
        made.start_worker("worker1")
        fleet.start_beat()
        yield made
    finally:
        for process in (envoy, api):
            if process.process is not None:
                process.end(kill=True)
        pebble.end()
