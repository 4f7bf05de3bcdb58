"""Workers, beats and commands of one test: started, killed and asked as a person would."""

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psutil
import redis
from celery import Celery
from sqlalchemy import Engine

from db.commands.execute import execute
from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine
from domain.commands.registry import parse_command
from runtime.process.process_table import KEEPER, keeper_of
from runtime.process.termination import stop_all
from stack.home.folder import project_root
from tasks.messaging.queues import celery_settings, host_queue
from tasks.redis.wake import Waker
from tasks.task_settings import TaskSettings
from tests.support.rows.deployment_rows import DeploymentRows
from tests.support.rows.deployments import HERE
from tests.support.stack.forked import Forked, start
from tests.support.stack.waiting import eventually

if TYPE_CHECKING:
    import subprocess

ROOT = project_root()
POLICY = {
    "strategy": "rolling_update",
    "spec": {"max_surge": 1, "max_unavailable": 1},
    "limits": {"timeout_seconds": 300},
}


class Fleet(DeploymentRows):
    """Everything that runs for one test, by name."""

    def __init__(self, database: str, redis_url: str, home: Path) -> None:
        super().__init__(database)
        self.home = home
        self.code = ROOT
        """The code that processes are started with from now on."""
        self.environment = {
            **os.environ,
            "DATABASE_URL": database,
            "REDIS_URL": redis_url,
            "ROLLWAY_HOME": str(home),
            "ROLLWAY_HOST": HERE,
            "PYTHONUNBUFFERED": "1",
        }
        self.within: dict[str, list[str]] = {}
        """What stands before the command of a process, by its name: a network of its own."""
        self._processes: dict[str, Forked | subprocess.Popen[bytes]] = {}
        self._engine = make_engine(DatabaseSettings(url=database))
        self._producer = Celery()
        self._producer.conf.update(celery_settings(TaskSettings.from_environment(self.environment)))
        self._redis = redis.Redis.from_url(redis_url)

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def waker(self) -> Waker:
        return Waker(self._redis)

    @property
    def producer(self) -> Celery:
        """A sender with the settings of the workers."""
        return self._producer

    def start_workers(self, *names: str, host: str = HERE, task_events: str = "-E", **environment: str) -> None:
        """Workers of four threads each, started as `rollway up` starts them, and ready."""
        for name in names:
            self.begin_worker(name, host=host, task_events=task_events, **environment)
        for name in names:
            eventually(partial(self._is_ready, name), what=f"{name} to be ready")

    def begin_worker(self, name: str, host: str = HERE, *, task_events: str = "-E", **environment: str) -> None:
        """A worker that may never become ready."""
        command = f"worker -P threads -c 4 --without-mingle --without-gossip -n {name}@%h --loglevel INFO {task_events}"
        queues = ["-Q", f"lifecycle,routes,commands,{host_queue(host)}"]
        self.start(name, [*command.split(), *queues], ROLLWAY_HOST=host, **environment)

    def start_beat(self, name: str = "beat", **environment: str) -> None:
        self.start(name, ["beat", "--pidfile=", "--loglevel", "INFO"], **environment)

    def kill(self, name: str) -> None:
        """SIGKILL, as the kernel does it when memory is short."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def ask_to_end(self, name: str, within: float = 120.0) -> int:
        """SIGTERM; the exit code."""
        process = self._processes.pop(name)
        process.send_signal(signal.SIGTERM)
        return process.wait(timeout=within)

    def is_running(self, name: str) -> bool:
        return self._processes[name].poll() is None

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text(errors="replace")

    def end(self) -> None:
        for name in list(self._processes):
            self.kill(name)
        self.close()
        self._engine.dispose()
        self._producer.close()
        self._redis.close()
        stop_all(self.home, grace_seconds=2)

    def ask(self, command: str, *, wake: bool = True, **payload: Any) -> dict[str, Any]:
        """Carry out a command; without the wake, workers and beat must find the work by themselves."""
        parsed = parse_command(f"rollway.{command}", {"request_id": uuid4().hex, "actor": "test", **payload})
        done = execute(self._engine, parsed)
        if wake and done.statuses:
            self.waker.deployments(done.statuses)
        return done.result

    def deploy_first(self, name: str = "web", replicas: int = 3, policy: dict[str, Any] = POLICY) -> None:
        """A deployment whose first revision v1 is up."""
        self.ask("create_deployment", deployment=name, desired_replicas=replicas, policy=policy)
        self.add_revision(name, "v1")
        self.ask("activate_revision", deployment=name, revision="v1")
        self.wait_until_ready(name, "v1", replicas)

    def add_revision(self, name: str, revision: str, **env: str) -> None:
        """A revision of the example service."""
        self.ask("add_revision", deployment=name, name=revision, spec=service(**env))

    def activate(self, name: str, revision: str, *, wake: bool = True) -> dict[str, Any]:
        return self.ask("activate_revision", wake=wake, deployment=name, revision=revision)

    def wait_until_ready(self, name: str, revision: str, replicas: int, within: float = 120.0) -> None:
        """Ready, with that revision alone, and every replica saying so itself."""
        eventually(
            lambda: self.state(name)["lifecycle"] == "ready" and self.answers(name) == [revision] * replicas,
            within,
            f"{name} to run {replicas} x {revision}",
        )

    def replica_processes(self, name: str) -> list[psutil.Process]:
        """Running replicas of a deployment, by what the operating system says."""
        wanted = {KEEPER: keeper_of(self.home), "ROLLWAY_DEPLOYMENT": name}
        return [process for process in psutil.process_iter() if wanted.items() <= _replica(process).items()]

    def replica_routes(self, name: str) -> list[str]:
        """The routes that those are replicas of, sorted."""
        carried = [_replica(process) for process in self.replica_processes(name)]
        return sorted(environment.get("ROLLWAY_ROUTE", "") for environment in carried)

    def _is_ready(self, name: str) -> bool:
        return " ready." in self.log(name)

    def start(self, name: str, arguments: list[str], **environment: str) -> None:
        """A worker, a beat or a Flower with these arguments, without waiting for it."""
        if self.code != ROOT:  # of another release, which may have had no other way
            ours = ["celery", "-A", "tasks.app", *arguments]
        else:
            ours = ["tasks.telemetry.flower", *arguments[1:]] if arguments[0] == "flower" else ["tasks", *arguments]
        command = [*self.within.get(name, ()), sys.executable, "-m", *ours]
        with (self.home / f"{name}.log").open("ab") as log:
            self._processes[name] = start(command, {**self.environment, **environment}, self.code, log)


def service(**env: str) -> dict[str, Any]:
    """The example service, as a revision has it."""
    return {
        "command": [sys.executable, str(ROOT / "examples" / "http_service.py")],
        "env": env,
        "health_check": {"interval_seconds": 0.5, "start_deadline_seconds": 20},
        "drain_seconds": 0.2,
    }


def _replica(process: psutil.Process) -> dict[str, str]:
    """The environment of a running replica; empty for every other process."""
    try:
        environment = process.environ()
        alive = process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return {}
    return environment if alive and "ROLLWAY_ROUTE" in environment else {}
