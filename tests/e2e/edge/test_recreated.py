"""A service of one replica that is replaced by `recreate`: callers wait for the new one, and none is refused."""

import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.support.proxies import plain_http
from tests.support.proxies.edge import api_process, envoy_process
from tests.support.stack.server_process import Process
from tests.support.stack.stack import ROOT, Fleet
from tests.support.stack.waiting import eventually
from traffic.envoy import retries

pytestmark = pytest.mark.e2e

STARTUP_SECONDS, CALLERS, GETS = 3, 20, 300


def spec(version: str) -> dict[str, object]:
    return {
        "command": [sys.executable, str(ROOT / "examples" / "http_service.py")],
        "env": {"STARTUP_SECONDS": str(STARTUP_SECONDS), "VERSION": version},
        "health_check": {"path": "/health", "interval_seconds": 0.5},
    }


def lets_wait(envoy: Process) -> bool:
    """Whether its routes send again what nothing serves."""
    found = plain_http.get(f"{envoy.ready.removesuffix('/ready')}/config_dump?resource=dynamic_route_configs")
    return retries.HELD_HEADER in found.text


def test_no_get_fails_while_the_one_replica_is_recreated(fleet: Fleet, tmp_path: Path) -> None:
    api = api_process(fleet.database, fleet.environment["REDIS_URL"], tmp_path)
    envoy = envoy_process(api, tmp_path)
    try:
        api.start()
        envoy.start()
        fleet.start_workers("worker1")
        fleet.start_beat()
        fleet.ask("create_deployment", deployment="model", desired_replicas=1, policy={"strategy": "recreate"})
        fleet.ask("add_revision", deployment="model", name="v1", spec=spec("1"))
        fleet.ask("activate_revision", deployment="model", revision="v1")
        eventually(lambda: fleet.state("model")["lifecycle"] == "ready", what="the model is ready")
        fleet.ask("set_traffic", deployment="model", hold_seconds=20)
        eventually(lambda: lets_wait(envoy), what="Envoy to know that callers wait")
        url, longest = f"{envoy.url}/model/", STARTUP_SECONDS + 20
        eventually(lambda: plain_http.get(url).status_code == 200, what="the model answers")
        fleet.ask("add_revision", deployment="model", name="v2", spec=spec("2"))
        fleet.ask("activate_revision", deployment="model", revision="v2")

        def caller(_: int) -> list[httpx.Response]:
            with plain_http.Client(timeout=longest) as client:
                answers = []
                for _ in range(GETS // CALLERS):
                    answers.append(client.get(url))
                    time.sleep(0.02 if answers[-1].elapsed.total_seconds() < 1 else 0)
                while answers[-1].json()["version"] != "2":
                    answers.append(client.get(url))
                    time.sleep(0.02)
                return answers

        with ThreadPoolExecutor(CALLERS) as pool:
            answers = [answer for each in pool.map(caller, range(CALLERS)) for answer in each]
        assert Counter(answer.status_code for answer in answers).keys() == {200}
        assert len(answers) >= GETS
        waited = max(answer.elapsed.total_seconds() for answer in answers)
        assert STARTUP_SECONDS <= waited < longest, "somebody has waited for the new one"
    finally:
        for process in (envoy, api):
            if process.process is not None:
                process.end(kill=True)
