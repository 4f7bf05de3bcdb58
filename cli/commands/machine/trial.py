"""Starts one replica of a revision here for a moment, before a file is written for it."""

import tempfile
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import psutil

from cli.terminal.server_warnings import show_notes
from domain.installation.settings import LogLimits, ports_between
from domain.replicas.diagnosis import failure_in_short
from domain.replicas.health import RUNS_WELL
from domain.revisions.health_check import HealthCheck
from domain.revisions.revision import RevisionSpec
from domain.text.errors import RollwayError
from runtime.probing.probes import Prober, ProbeTarget
from runtime.process.account_pool import AccountPool, NoAccountError
from runtime.process.accounts import EACH, Accounts
from runtime.process.begin.limits import ProcessLimits
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import Replica, ReplicaRequest, ReplicaStartError
from stack.home.folder import Home
from stack.parts.replica_accounts import oneself, replica_user_here
from tasks.replicas.probing import end_of
from tasks.task_settings import TaskSettings

_LOOK_SECONDS = 0.1
_GRACE_SECONDS = 5.0
_LOG_LINES = 40


class NotHealthyError(RollwayError):
    """The tried replica did not come up."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The conditions of replicas of this machine's stack: their user, where it is another, and their limits."""

    home: Home
    user: str
    settings: TaskSettings
    logs: LogLimits

    @classmethod
    def here(cls, home: Home, environ: Mapping[str, str]) -> "Ground":
        """The conditions of this home's workers, now or in future. Raises InvalidInputError."""
        settings = TaskSettings.from_environment({**environ, "REDIS_URL": "redis://localhost"})
        return cls(home, replica_user_here(home, environ), settings, LogLimits.from_environment(environ))

    def runtime(self, home: Path, deployment: str) -> ProcessRuntime:
        """A runtime with an empty folder of its own, unknown to all workers."""
        limits = ProcessLimits(self.settings.replica_processes, self.settings.replica_files, self.logs)
        return ProcessRuntime(
            home,
            ports_between(self.settings.replica_ports),
            also=self.settings.replica_env,
            accounts=Accounts(self.user or None, self.settings.replica_users),
            limits=limits,
            pool=AccountPool(self.home.root).lent_to(home, deployment) if self.user == EACH else None,
        )


class Tried(NamedTuple):
    """The seconds until it was healthy, and its user in words."""

    seconds: float
    user: str


def try_replica(deployment: str, spec: RevisionSpec, patience: float, ground: Ground) -> Tried:
    """Start one replica, wait until it is healthy, and end it. Raises NotHealthyError saying why it was not."""
    show_notes()
    request = ReplicaRequest(uuid4(), deployment, "tried", spec)
    with tempfile.TemporaryDirectory(prefix="rollway-init-") as folder:
        try:
            runtime = ground.runtime(Path(folder), deployment)
        except NoAccountError as error:
            raise NotHealthyError(f"no account can be had for it: {error}") from None
        try:
            began = time.monotonic()
            runtime.start(request)
            _wait_for_health(runtime, request, began + patience)
            user = "an account of its own" if ground.user == EACH else ground.user or oneself()
            return Tried(time.monotonic() - began, user)
        except ReplicaStartError as error:
            raise NotHealthyError(str(error)) from None
        finally:
            _end(runtime, request)


def _wait_for_health(runtime: ProcessRuntime, request: ReplicaRequest, until: float) -> None:
    began, check, prober = time.monotonic(), request.spec.health_check, Prober("trial")
    try:
        while True:
            replica = runtime.find(request.route_id)
            if replica is None or not replica.running:
                tail = runtime.log_tail(request.route_id, _LOG_LINES)
                raise NotHealthyError(failure_in_short(end_of(replica).detail, tail))
            output = _said_of(replica, check, prober) if check else ""
            if not output and (check or time.monotonic() - began > RUNS_WELL.total_seconds()):
                answering = runtime.find(request.route_id)
                _refuse_a_stranger(answering)
                if not check or _may_listen(answering):
                    return
                output = "its port answers, and it does not listen there"
            if output and time.monotonic() > until:
                raise NotHealthyError(f"it runs, but {output}{_where_it_listens(replica)}")
            time.sleep(_LOOK_SECONDS)
    finally:
        prober.close()


def _said_of(replica: Replica, check: HealthCheck, prober: Prober) -> str:
    """The answer to the probe; empty for a success."""
    prober.submit([ProbeTarget(replica.route_id, replica.address or "", check)])
    answer = prober.answers(check.timeout_seconds + 1).get(replica.route_id)
    if answer is None:
        return "its health is not answered"
    return "" if answer.ok else answer.detail


def _refuse_a_stranger(replica: Replica | None) -> None:
    """The answer was another program's: two installations may choose one port at one moment."""
    if replica and replica.stranger:
        raise NotHealthyError(f"its port is held by {replica.stranger}; try again, which takes another port")


def _may_listen(replica: Replica | None) -> bool:
    """Whether the answer can be its own: a socket that has just begun to listen is seen a moment later."""
    return replica is not None and replica.listens is not False


def _where_it_listens(replica: Replica) -> str:
    """A sentence when it listens on another port than its own."""
    own = int((replica.address or ":0").rpartition(":")[2])
    ports = _ports_of(int(replica.handle.removeprefix("pid:")))
    if own in ports or not ports:
        return ""
    others = ", ".join(map(str, sorted(ports)))
    return f"; it listens on {others} and not on its PORT, {own}: write {{port}} where its command says the port"


def _ports_of(pid: int) -> Collection[int]:
    ports: set[int] = set()
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                sockets = each.net_connections(kind="inet")
                ports |= {socket.laddr.port for socket in sockets if socket.status == psutil.CONN_LISTEN}
    return ports


def _end(runtime: ProcessRuntime, request: ReplicaRequest) -> None:
    runtime.terminate(request.route_id)
    until = time.monotonic() + _GRACE_SECONDS
    while (replica := runtime.find(request.route_id)) is not None and replica.running:
        if time.monotonic() > until:
            runtime.kill(request.route_id)
        time.sleep(_LOOK_SECONDS)
    runtime.forget(request.route_id)
