"""An engine that takes connections and never answers: probes, starts and stops of everybody else go on."""

import gc
import os
import signal
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from sqlalchemy import Engine

from runtime.docker.runtime import DockerRuntime
from runtime.probing.probes import Prober
from tasks.redis.wake import Waker
from tasks.replicas.probing import ProbePass
from tasks.replicas.start_stop import HostReplicas
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, ask, make_deployment
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.workers.replicas import SERVICE, Runtimes, make_route, route, until
from tests.support.workers.runtimes import pid_of

HANGS_SECONDS = 600
"""Longer than any wait of this test: whoever waits for the engine is not done in time."""


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[DockerRuntime]:
    with socket.socket(socket.AF_UNIX) as engine:
        path = str(tmp_path / "engine.sock")
        engine.bind(path)
        engine.listen(100)
        yield DockerRuntime(HERE, f"unix://{path}", timeout_seconds=HANGS_SECONDS)
    eventually(lambda: gc.collect() >= 0 and not any(_asks_docker(thread) for thread in threading.enumerate()))


def _asks_docker(thread: threading.Thread) -> bool:
    return thread.name.startswith(("docker replicas", "liveness"))


def test_an_engine_that_hangs_holds_up_nobody(
    engine: Engine, waker: Waker, client: redis.Redis, runtimes: Runtimes, hanging: DockerRuntime, prober: Prober
) -> None:
    host = HostReplicas(engine, {**runtimes, "docker": hanging}, waker, HERE, timedelta())
    probes = ProbePass(engine, {**runtimes, "docker": hanging}, waker, client, HERE, prober)
    in_docker = {"runtime": "docker", "docker": {"image": "web:1"}, "drain_seconds": 0, "stop_grace_seconds": 0}
    make_deployment(engine, "■■■◇◇◇", name="boxes", n=3, status=SCALING, spec=in_docker)
    web = make_route(engine, SERVICE)

    host.start()
    until(engine, web, "healthy", probes.look)
    os.kill(pid_of(runtimes["process"].find(web)), signal.SIGKILL)
    until(engine, web, "failed", probes.look)
    for name in ("boxes", "web"):
        ask(engine, "destroy", deployment=name)
    run_until_quiet(coordinator_without_redis(engine))
    eventually(lambda: host.stop() is not None and route(engine, web)["stopped_at"] is not None)
