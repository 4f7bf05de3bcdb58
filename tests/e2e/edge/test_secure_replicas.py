"""Replicas that speak TLS, by certificates of one's own: a rollout through Envoy, and authorities that are wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates.authorities import Authority
from tests.support.proxies.edge import api_process, envoy_process
from tests.support.rows.deployments import read, write
from tests.support.stack.server_process import Process
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually
from tests.support.workers.callers import asked
from tests.support.workers.runtimes import LEAN_SERVICE

pytestmark = pytest.mark.e2e


@pytest.fixture
def envoy(fleet: Fleet, tmp_path: Path) -> Iterator[Process]:
    api = api_process(fleet.database, fleet.environment["REDIS_URL"], tmp_path)
    envoy = envoy_process(api, tmp_path)
    try:
        api.start()
        envoy.start()
        yield envoy
    finally:
        for process in (envoy, api):
            if process.process is not None:
                process.end(kill=True)


def test_no_request_is_lost_by_a_rollout_and_a_wrong_authority_is_said(
    fleet: Fleet, envoy: Process, tmp_path: Path
) -> None:
    authority, folder = Authority.make(), tmp_path / "own"
    folder.mkdir()
    chain, key = authority.certify("inside.example.com").written(folder)
    ca = folder / "ca.pem"
    ca.write_text(authority.pem)
    spec = {
        "command": LEAN_SERVICE,
        "env": {"CERTIFICATE": str(chain), "KEY": str(key)},
        "health_check": {"path": "/", "interval_seconds": 0.5},
    }
    fleet.start_workers("worker1", ROLLWAY_SECRETS_ALLOW=f"file:{folder}")
    fleet.start_beat()
    fleet.ask("create_deployment", deployment="web", desired_replicas=2)
    fleet.ask("set_traffic", deployment="web", upstream_tls={"ca": f"file:{ca}", "server_name": "inside.example.com"})
    fleet.ask("add_revision", deployment="web", name="v1", spec=spec)
    fleet.ask("activate_revision", deployment="web", revision="v1")
    eventually(lambda: fleet.state("web")["lifecycle"] == "ready", what="web is ready")
    with asked(envoy.url, "web") as load:
        fleet.ask("add_revision", deployment="web", name="v2", spec=spec)
        fleet.ask("activate_revision", deployment="web", revision="v2")
        eventually(lambda: load.tally.answers[200, "v2"] > 50 and fleet.state("web")["lifecycle"] == "ready")
    assert load.tally.failed == {}
    ca.write_text(Authority.make().pem)
    write(fleet.engine, "UPDATE certificates SET due_at = now()")
    why = "a certificate that is not believed for inside.example.com, as traffic.upstream_tls wants it"
    eventually(
        lambda: any(why in row["status_reason"] for row in read(fleet.engine, "SELECT status_reason FROM routes"))
    )
    ca.write_text(authority.pem)
    write(fleet.engine, "UPDATE certificates SET due_at = now()")
    with asked(envoy.url, "web"):
        eventually(lambda: fleet.state("web")["lifecycle"] == "ready", what="web is ready again")
