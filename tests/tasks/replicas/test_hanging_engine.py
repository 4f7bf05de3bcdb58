"""An engine that gives no answer: probes, starts and stops of everybody else go on, and what ends with it is lost."""

import gc
import os
import signal
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
import redis
from sqlalchemy import Engine

from runtime.docker.docker_runtime import DockerRuntime
from runtime.probing.probes import Prober
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import Replica, RuntimeUnavailableError
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tasks.replicas.liveness import Silences
from tasks.replicas.probing import ProbePass
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, ask, make_deployment, read
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.workers.probing import Looks
from tests.support.workers.replicas import SERVICE, Runtimes, make_route, route, until, until_asked
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
    engine: Engine, waker: Waker, redis_client: redis.Redis, runtimes: Runtimes, hanging: DockerRuntime, prober: Prober
) -> None:
    host = HostReplicas(engine, {**runtimes, "docker": hanging}, waker, HERE, timedelta())
    probes = ProbePass(
        engine, {**runtimes, "docker": hanging}, waker, redis_client, HERE, prober, Silences(), timedelta(seconds=5)
    )
    in_docker = {"runtime": "docker", "docker": {"image": "web:1"}, "drain_seconds": 0, "stop_grace_seconds": 0}
    make_deployment(engine, "■■■◇◇◇", name="boxes", n=3, status=SCALING, spec=in_docker)
    web = make_route(engine, SERVICE)

    until_asked(engine, host, web)
    until(engine, web, "healthy", probes.look)
    os.kill(pid_of(runtimes["process"].find(web)), signal.SIGKILL)
    until(engine, web, "failed", probes.look)
    for name in ("boxes", "web"):
        ask(engine, "destroy", deployment=name)
    run_until_quiet(coordinator_without_redis(engine))
    eventually(lambda: host.stop() is not None and route(engine, web)["stopped_at"] is not None)


class StartedAnew(ProcessRuntime):
    """As an engine that is started anew: while it is away it gives no answer."""

    is_away = False

    def find(self, route_id: UUID) -> Replica | None:
        if self.is_away:
            raise RuntimeUnavailableError("it is away")
        return super().find(route_id)


def test_what_ends_with_its_engine_is_lost_and_what_it_starts_then_may_fail(
    engine: Engine, replica_home: Path, waker: Waker, make_pass: Looks
) -> None:
    containers = StartedAnew(replica_home)
    host = HostReplicas(engine, {"process": containers}, waker, HERE, timedelta())

    def healthy_one(name: str) -> UUID:
        made = make_deployment(engine, "◇", name=name, n=1, status=SCALING, spec=SERVICE).routes[0]
        until_asked(engine, host, made)
        until(engine, made, "healthy", lambda: make_pass({"process": containers}).look())
        return made

    def why_failed(made: UUID) -> str:
        os.kill(pid_of(ProcessRuntime(replica_home).find(made)), signal.SIGKILL)
        containers.is_away = False
        return str(until(engine, made, "failed", lambda: make_pass({"process": containers}).look())["status_reason"])

    before = healthy_one("before")
    containers.is_away = True
    make_pass({"process": containers}).look()
    assert why_failed(before) == "its process was killed by SIGKILL while the runtime 'process' was away"
    assert why_failed(healthy_one("after")) == "its process was killed by SIGKILL"
    failed = read(engine, "SELECT name, failed_starts FROM deployments ORDER BY name")
    assert failed == [{"name": "after", "failed_starts": 1}, {"name": "before", "failed_starts": 0}]
