"""Whose answer it is: a replica tells its port before it listens there, and another program may be faster."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine

from runtime.process.accounts import EACH, Accounts
from runtime.process.process_runtime import ProcessRuntime
from runtime.process.termination import stop_all
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tasks.replicas.probing import ProbePass
from tasks.replicas.strangers import Strangers
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, make_deployment, read
from tests.support.stack.ports import free_port
from tests.support.stack.waiting import eventually
from tests.support.trust.port_thief import LOADS, STEALS
from tests.support.workers.probing import Looks
from tests.support.workers.replicas import QUICK, Runtimes, make_route, route, until, until_started
from tests.support.workers.runtimes import ended, request

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE")
STRANGER = 61_234


@contextmanager
def thief(go: Path, most: int = 1, *, answers: bool = True) -> Iterator["subprocess.Popen[bytes]"]:
    """A program of another user, which listens at the ports that it reads in command lines of the test's services."""
    command = ("python3", "-c", STEALS, str(go), str(most), "answers" if answers else "says nothing")
    with subprocess.Popen(
        command, user=STRANGER, group=STRANGER, extra_groups=(), cwd="/", stdout=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def port_of(process: "subprocess.Popen[bytes]") -> int:
    """The next one that it has taken."""
    assert process.stdout
    return int(process.stdout.readline())


@dataclass
class Stage:
    """A host whose deployments have accounts, and one route of which every status is remembered."""

    engine: Engine
    runtimes: Runtimes
    here: HostReplicas
    probing: ProbePass
    go: Path
    statuses: list[str] = field(default_factory=list)

    def make(self, **check: Any) -> UUID:
        spec = {
            "command": ["python3", "-c", LOADS, "--port={port}", str(self.go)],
            "working_directory": "/",
            "health_check": QUICK | check,
        }
        name = f"web-{uuid4().hex[:6]}"
        (made,) = make_deployment(self.engine, "◇", n=1, name=name, status=SCALING, spec=spec).routes
        until_started(self.here)
        return made

    def until(self, route_id: UUID, status: str) -> dict[str, Any]:
        def look() -> None:
            self.probing.look()
            self.statuses.append(str(route(self.engine, route_id)["status"]))

        return until(self.engine, route_id, status, look)

    def failed_starts(self) -> int:
        return int(read(self.engine, "SELECT failed_starts FROM deployments")[0]["failed_starts"])


@pytest.fixture
def stage(engine: Engine, waker: Waker, replica_home: Path, make_pass: Looks) -> Iterator[Stage]:
    go = Path(f"/tmp/loaded-{uuid4().hex}")
    runtimes = {"process": ProcessRuntime(replica_home, accounts=Accounts(EACH))}
    here = HostReplicas(engine, runtimes, waker, HERE, timedelta(seconds=5))
    yield Stage(engine, runtimes, here, make_pass(dict(runtimes)), go)
    go.unlink(missing_ok=True)


@needs_root
@pytest.mark.parametrize("answers", [True, False], ids=["and answers", "and says nothing"])
def test_a_program_that_listens_first_is_not_taken_for_the_replica(stage: Stage, *, answers: bool) -> None:
    made = stage.make()
    with thief(stage.go, answers=answers) as process:
        port = port_of(process)
        failed = stage.until(made, "failed")
        assert str(failed["address"]).endswith(f":{port}")
        assert failed["status_reason"] == f"port {port} is held by user {STRANGER}"
        assert set(stage.statuses) <= {"provisioning", "failed"}, "it was never healthy"
        assert stage.failed_starts() == 0, "its revision is not to blame"

        again = stage.make()
        stage.go.touch()
        assert not str(stage.until(again, "healthy")["address"]).endswith(f":{port}")


@needs_root
def test_a_port_that_is_taken_from_one_that_served_ends_it(stage: Stage) -> None:
    """As where a service closes its port and opens it again, or its process of the moment is killed."""
    stage.go.touch()
    made = stage.make(failure_threshold=100)
    address = str(stage.until(made, "healthy")["address"])
    stage.go.unlink()
    with thief(stage.go) as process:
        urlopen(Request(f"http://{address}/close", method="POST"), timeout=5).close()
        assert address.endswith(f":{port_of(process)}")
        assert stage.until(made, "failed")["status_reason"] == f"port {address[-5:]} is held by user {STRANGER}"


SERVES = ("python3", "-m", "http.server", "{port}", "--bind", "127.0.0.1")
ONCE_LOADED = ("sh", "-c", 'while [ ! -e "$0" ]; do sleep 0.02; done; exec "$@"')


@pytest.mark.parametrize("ends", [False, True], ids=["while it loads", "and it ends"])
def test_a_replica_of_another_home_that_listens_first_is_not_taken_for_it(
    engine: Engine, waker: Waker, make_pass: Looks, tmp_path: Path, *, ends: bool
) -> None:
    """Two installations of one user choose their ports by themselves: the kernel cannot tell their replicas apart."""
    port, go = free_port(), tmp_path / "go"
    ours, theirs = (ProcessRuntime(tmp_path / home, range(port, port + 1)) for home in ("ours", "theirs"))
    here = HostReplicas(engine, {"process": ours}, waker, HERE, timedelta(seconds=5))
    made = make_route(engine, {"command": [*ONCE_LOADED, str(go), *SERVES], "health_check": QUICK})
    stranger = request(SERVES)
    try:
        until_started(here)
        theirs.start(stranger)
        eventually(lambda: (seen := theirs.find(stranger.route_id)) and seen.listens, what="the other to listen")
        if ends:
            go.touch()
            assert ended(ours, made).exit_code == 1, "its port is in use"
        failed = until(engine, made, "failed", make_pass({"process": ours}).look)
        assert failed["status_reason"] == f"port {port} is held by another replica, of the deployment 'web'"
        assert failed["healthy_at"] is None
        assert read(engine, "SELECT failed_starts FROM deployments") == [{"failed_starts": 0}]
        assert getattr(theirs.find(stranger.route_id), "stranger", None) == ""
    finally:
        for home in ("ours", "theirs"):
            stop_all(tmp_path / home, grace_seconds=1)


def test_a_deployment_is_forgiven_five_times_in_ten_minutes() -> None:
    now = [0.0]
    strangers, deployment, other = Strangers(lambda: now[0]), uuid4(), uuid4()
    assert [strangers.forgives(deployment) for _ in range(7)] == [True] * 5 + [False] * 2
    assert strangers.forgives(other)
    now[0] = 601.0
    assert strangers.forgives(deployment)


DROPS = LOADS.replace("while True:", "os.setgid(65534); os.setuid(65534)\nwhile True:")


@needs_root
def test_a_replica_that_has_become_another_user_is_known_by_its_process(
    engine: Engine, waker: Waker, runtimes: Runtimes, make_pass: Looks, stage: Stage
) -> None:
    """Without accounts a service may begin as root, and listen as somebody else."""
    stage.go.touch()
    command = ["sh", "-c", 'python3 -c "$0" "$@" & wait', DROPS, "--port={port}", str(stage.go)]
    made = make_route(engine, {"command": command, "working_directory": "/", "health_check": QUICK})
    until_started(HostReplicas(engine, runtimes, waker, HERE, timedelta(seconds=5)))
    until(engine, made, "healthy", make_pass(dict(runtimes)).look)
