"""Rollouts between programs that are spoken to in different ways, and the ways back, under load: none is lost."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.certificates.authorities import Authority
from tests.support.proxies.edge import edge_before
from tests.support.stack.stack import ROOT, Fleet
from tests.support.stack.waiting import eventually
from tests.support.workers.callers import Callers, asked
from tests.support.workers.runtimes import ASGI_SERVICE

pytestmark = pytest.mark.e2e

ONE_BY_ONE = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
CHECK = {"path": "/", "interval_seconds": 0.3}
HTTP2_SERVICE = ROOT / "tests" / "support" / "proxies" / "http2_service.py"


@pytest.fixture
def url(fleet: Fleet, tmp_path: Path) -> Iterator[str]:
    """That of an Envoy."""
    with edge_before(fleet.database, fleet.environment["REDIS_URL"], tmp_path) as envoy:
        yield envoy


def plain(folder: Path) -> dict[str, Any]:
    (folder / "plain.py").write_text(ASGI_SERVICE)
    command = [sys.executable, "-m", "uvicorn", "plain:app", "--app-dir", str(folder), "--port", "{port}"]
    return {"command": command, "health_check": CHECK}


def http2() -> dict[str, Any]:
    check = {**CHECK, "protocol": "http2"}
    return {"command": [sys.executable, str(HTTP2_SERVICE), "{port}"], "health_check": check}


def apply(fleet: Fleet, revision: str, spec: dict[str, Any], **traffic: Any) -> None:
    document = {"deployment": "web", "revision": {"name": revision, **spec}, "policy": ONE_BY_ONE, "replicas": 3}
    fleet.ask("apply", documents=[{**document, "traffic": traffic}])


def answers(fleet: Fleet, callers: Callers, revision: str) -> None:
    """The rollout is over, and callers are answered by this revision."""
    eventually(lambda: fleet.state("web")["lifecycle"] == "ready", what=f"{revision} runs")
    before = callers.answers[200, revision]
    eventually(lambda: callers.answers[200, revision] > before + 30, what=f"{revision} answers")


def test_no_request_is_lost_from_http1_to_http2_to_tls_and_back(fleet: Fleet, url: str, tmp_path: Path) -> None:
    authority, folder = Authority.make(), tmp_path / "own"
    folder.mkdir()
    chain, key = authority.certify("inside.example.com").written(folder)
    ca = folder / "ca.pem"
    ca.write_text(authority.pem)
    secure = plain(folder)
    secure["command"] += ["--ssl-certfile", str(chain), "--ssl-keyfile", str(key)]
    by_tls = {"ca": f"file:{ca}", "server_name": "inside.example.com"}
    fleet.start_workers("worker1", ROLLWAY_SECRETS_ALLOW=f"file:{folder}")
    fleet.start_beat()
    apply(fleet, "v1", plain(folder))
    with asked(url, "web", "POST") as callers:  # which no proxy sends twice
        answers(fleet, callers, "v1")
        apply(fleet, "v2", http2(), protocol="http2")
        answers(fleet, callers, "v2")
        fleet.ask("undo", deployment="web")
        answers(fleet, callers, "v1")
        apply(fleet, "v3", secure, upstream_tls=by_tls)
        answers(fleet, callers, "v3")
        fleet.ask("undo", deployment="web", revision="v2")
        answers(fleet, callers, "v2")
        fleet.ask("activate_revision", deployment="web", revision="v3")
        eventually(lambda: fleet.state("web")["lifecycle"] == "deploying")
        fleet.ask("abort", deployment="web")
        answers(fleet, callers, "v2")
    assert callers.failed == 0, callers.answers
