"""What a measurement with real workers stands on: servers of its own, workers, a beat, and simulated replicas."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import psycopg
from psycopg import sql

from tasks.messaging.queues import LIFECYCLE_QUEUE, queue
from tasks.redis.wake import Waker
from tests.support.people.people_api import People, serving_people
from tests.support.stack.servers import EmbeddedServer, embedded_postgres, embedded_redis
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually
from tools.bench.data import QUIET, fill, place
from tools.bench.world import HOST, READY, hosts_of

SPEC: Mapping[str, Any] = {"command": ["sleep", "60"], "drain_seconds": 0}
POLICIES = """
    INSERT INTO policies (deployment_id, strategy, spec, limits)
    SELECT id, 'rolling_update', '{"max_surge": 1, "max_unavailable": 1, "pacing": "wave", "min_ready_seconds": 0}',
           '{"timeout_seconds": 3600, "failure_budget": null, "progress_timeout_seconds": null}'
      FROM deployments
"""
"""Of the deployments that tools.bench.data makes: what a rollout of theirs begins with."""

LOCK_WAITS_FROM_MS = 20
"""Waits for a lock that last longer are in Postgres' log."""


class Stage(Fleet):
    """Workers, beat and world of one measurement, on servers that end with it."""

    def __init__(self, postgres: EmbeddedServer, valkey: EmbeddedServer, home: Path) -> None:
        super().__init__(postgres.url, valkey.url, home)
        self.postgres = postgres
        self.valkey = valkey
        self.postgres_log = home.parent / "postgres" / "postgres.log"

    def start_simulation(self, workers: int, start_seconds: float, hosts: int = 1, **environment: str) -> None:
        """Workers that decide, one beat, and one world that plays the hosts of all replicas."""
        self.start_deciders(workers, **environment)
        self.start_beat()
        self.start_world(start_seconds, hosts)

    def fill_quiet(self, deployments: int, hosts: int = 1) -> None:
        """A fleet that is at rest, with policies, on so many simulated hosts."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            fill(connection, QUIET, deployments)
            connection.execute(POLICIES)
            place(connection, hosts_of(hosts))

    @contextmanager
    def serving_people(self) -> Iterator[People]:
        """A server for people, which is watched with the others."""
        with (
            tempfile.TemporaryDirectory(prefix="rollway-people-") as folder,
            serving_people(self.database, self.valkey.url, Path(folder)) as people,
        ):
            assert people.server.process is not None
            self._processes["people"] = people.server.process
            yield people

    def start_deciders(self, count: int, called: str = "worker", **environment: str) -> None:
        """Workers that belong to the first simulated host and leave its queue to the world."""
        names = [f"{called}{number}" for number in range(1, count + 1)]
        for name in names:
            command = f"worker -P threads -c 4 --without-mingle --without-gossip -E -n {name}@%h --loglevel INFO"
            queues = ["-Q", "lifecycle,routes,commands"]
            self.start(name, [*command.split(), *queues], ROLLWAY_HOST=HOST, **environment)
        for name in names:
            eventually(partial(self._is_ready, name), 60, f"{name} to be ready")

    def start_world(self, start_seconds: float, hosts: int = 1) -> None:
        """Replicas whose start takes that long."""
        with (self.home / "world.log").open("ab") as log:
            self._processes["world"] = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tools.bench.world",
                    "--start-seconds",
                    str(start_seconds),
                    "--hosts",
                    str(hosts),
                ],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        eventually(lambda: READY in self.log("world"), 60, "the world to begin")

    def watched(self) -> dict[str, psutil.Process]:
        """Every process of the measurement, by name."""
        own = {name: psutil.Process(process.pid) for name, process in self._processes.items()}
        return {
            **own,
            "postgres": psutil.Process(self.postgres.pid),
            "valkey": psutil.Process(self.valkey.pid),
        }

    @property
    def waker(self) -> Waker:
        """For changes that are made past the commands."""
        return Waker(self._redis)

    def send(self, command: str, **payload: object) -> None:
        """A command as a message, as another service sends it."""
        payload = {"request_id": uuid4().hex, "actor": "bench", **payload}
        self._producer.send_task(f"rollway.{command}", kwargs={"payload": payload}, ignore_result=True)

    def send_tick(self, task: str) -> None:
        """A tick that beat would send sooner or later."""
        self._producer.send_task(task, queue=queue(LIFECYCLE_QUEUE), ignore_result=True)

    def deploy(self, name: str, replicas: int, policy: Mapping[str, Any], spec: Mapping[str, Any] = SPEC) -> None:
        """A deployment whose v1 runs; v2 is known, and is the same."""
        self.ask("create_deployment", deployment=name, desired_replicas=replicas, policy=dict(policy))
        for revision in ("v1", "v2"):
            self.ask("add_revision", deployment=name, name=revision, spec=dict(spec))
        self.activate(name, "v1")
        self.wait_until_idle(name, within=120)

    def wait_until_idle(self, name: str, within: float) -> None:
        """Ready, and not degraded."""
        eventually(lambda: self.state(name)["lifecycle"] == "ready", within, f"{name} to be ready")


@contextmanager
def stage() -> Iterator[Stage]:
    """Servers as `rollway up` starts them, which write to the disk, migrated, and nobody on them yet."""
    with (
        tempfile.TemporaryDirectory(prefix="rollway-bench-") as folder,
        embedded_postgres(Path(folder) / "postgres", fsync=True) as postgres,
        embedded_redis(Path(folder) / "valkey") as valkey,
    ):
        migrate(postgres.url)
        _log_lock_waits(postgres.url)
        home = Path(folder) / "home"
        home.mkdir()
        made = Stage(postgres, valkey, home)
        try:
            yield made
        finally:
            made.end()


def migrate(url: str) -> None:
    """Bring the database to the newest schema."""
    environment = {**os.environ, "DATABASE_URL": url}
    command = [sys.executable, "-m", "cli.main", "migrate"]
    subprocess.run(command, env=environment, check=True, capture_output=True)


def rolling(surge: int | str, unavailable: int | str) -> dict[str, Any]:
    """A policy."""
    spec = {"max_surge": surge, "max_unavailable": unavailable}
    return {"strategy": "rolling_update", "spec": spec, "limits": {"timeout_seconds": 3600}}


def _log_lock_waits(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET log_lock_waits = on")
        connection.execute(sql.SQL("ALTER SYSTEM SET deadlock_timeout = {}").format(LOCK_WAITS_FROM_MS))
        connection.execute("SELECT pg_reload_conf()")
