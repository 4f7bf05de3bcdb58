"""A thief behind the real account, on a machine where every part of a stack runs and neighbours do."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from domain.revisions.revision import RevisionSpec
from runtime.base import ReplicaRequest
from runtime.process.accounts import EACH, Accounts
from runtime.process.ending import stop_all
from runtime.process.runtime import ProcessRuntime
from stack.down import down
from stack.home.folder import Home
from stack.home.settings import load_settings
from stack.prepare import UpRequest
from stack.status import StackStatus
from stack.supervisor.stop import stop_replicas
from stack.up import up
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import SLEEPER, ended, given_back, pid_of

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE"),
]
EVERY = Accounts(EACH)

THIEF = """
import ctypes, json, os, socket, sys
files, pids, ports = json.load(open(sys.argv[1]))
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
def may(do, *arguments):
    try:
        return bool(do(*arguments))
    except OSError:
        return False
def reads(path):
    return open(path, "rb").read(1) is not None
def writes(path):
    return open(path, "ab") is not None
def enters(path):
    return os.chdir(path) is None and os.listdir(".") is not None
def ends(pid):
    return os.kill(pid, 0) is None
def traces(pid):
    if libc.ptrace(16, pid, None, None):
        return False
    os.waitpid(pid, 0)
    libc.ptrace(17, pid, None, None)
    return True
def talks(port, word):
    with socket.create_connection(("127.0.0.1", port), 5) as peer:
        peer.sendall(word.encode())
        answer = peer.recv(99)
    return answer and not answer.startswith((b"-NOAUTH", b"HTTP/1.1 401", b"HTTP/1.0 401"))
got = {}
for path in files:
    got[path] = [does.__name__ for does in (reads, writes, enters) if may(does, path)]
for name, pid in pids.items():
    about = {f"{what} of {name}": [reads.__name__] * may(reads, f"/proc/{pid}/{what}") for what in ("environ", "mem")}
    got.update(about)
    got[f"folder of {name}"] = [enters.__name__] * (may(enters, f"/proc/{pid}/cwd") or may(enters, f"/proc/{pid}/root"))
    got[name] = [does.__name__ for does in (ends, traces) if may(does, pid)]
for name, (port, word) in ports.items():
    got[name] = ["talks"] * bool(may(talks, port, word))
print(json.dumps({"tried": len(got), "got": {name: does for name, does in got.items() if does}}))
"""


@dataclass(frozen=True)
class Around:
    """A stack that runs, a neighbour of another deployment in it, and one of another home."""

    home: Home
    status: StackStatus
    neighbours: dict[str, int]

    @property
    def pids(self) -> dict[str, int]:
        parts = {part.name: part.pid for part in self.status.parts if part.pid}
        supervisor = {"supervisor": self.status.supervisor_pid} if self.status.supervisor_pid else {}
        return parts | supervisor | self.neighbours

    def loot(self, runtime: ProcessRuntime, deployment: str, folder: Path) -> dict[str, list[str]]:
        """What a thief of that deployment gets of all that there is."""
        settings = load_settings(self.home)
        assert settings
        ask = "GET /v1/deployments HTTP/1.0\r\n\r\n"
        ports = {"Valkey's port": (settings.ports.valkey, "KEYS *\r\n"), "people's port": (settings.ports.people, ask)}
        ports["Flower's port"] = (settings.ports.flower, "GET /tasks HTTP/1.0\r\n\r\n")
        found = [str(path) for path in (self.home.root, *self.home.root.rglob("*"))]
        things = folder / "things"
        things.write_text(json.dumps([found, self.pids, ports]))
        spec = RevisionSpec(command=("python3", "-c", THIEF, str(things)))
        asked = ReplicaRequest(uuid4(), deployment, f"{deployment}-1", spec, is_walled=True)
        replica = runtime.start(asked)
        ended(runtime, replica.route_id)
        said = json.loads(eventually(lambda: runtime.log_tail(replica.route_id, 1)))
        assert said["tried"] > len(found) + 3 * len(self.pids)
        got: dict[str, list[str]] = said["got"]
        return got


def neighbour(runtime: ProcessRuntime, deployment: str) -> int:
    spec = RevisionSpec(command=SLEEPER, env={"TOKEN": "hunter2"})
    return pid_of(runtime.start(ReplicaRequest(uuid4(), deployment, f"{deployment}-1", spec)))


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Around]:
    home, other = Home(tmp_path_factory.mktemp("stack") / ".rollway"), tmp_path_factory.mktemp("other")
    with ExitStack() as left:
        left.enter_context(given_back(home.root))
        left.enter_context(given_back(other))
        left.callback(stop_all, other, 0.1)
        left.callback(down, home, lambda _: None, stop_replicas)
        status = up(UpRequest(home=home, environ={"ROLLWAY_REPLICA_USER": EACH}, workers=1), lambda _: None)
        beside = neighbour(ProcessRuntime(home.root, accounts=EVERY), "web")
        elsewhere = neighbour(ProcessRuntime(other, accounts=EVERY), "other")
        yield Around(home, status, {"neighbour": beside, "neighbour in another home": elsewhere})


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may read."""
    made = Path(subprocess.check_output(["mktemp", "--directory", "/tmp/thief-XXXXXX"], text=True).strip())
    made.chmod(0o755)
    yield made
    for path in made.iterdir():
        path.unlink()
    made.rmdir()


def test_a_thief_behind_the_account_of_its_deployment_gets_nothing(around: Around, shared: Path) -> None:
    parts = {"postgres", "valkey", "worker1", "beat", "api", "people", "envoy", "flower", "supervisor"}
    assert parts | around.neighbours.keys() == around.pids.keys()
    assert around.loot(ProcessRuntime(around.home.root, accounts=EVERY), "other", shared) == {}


def test_a_thief_of_the_same_deployment_reaches_its_own_kind_alone(around: Around, shared: Path) -> None:
    got = around.loot(ProcessRuntime(around.home.root, accounts=EVERY), "web", shared)
    assert got["neighbour"] == ["ends", "traces"]
    assert {name.removeprefix("environ of ").removeprefix("mem of ") for name in got if "folder" not in name} == {
        "neighbour"
    }


def test_a_thief_without_a_wall_gets_it_all(around: Around, shared: Path) -> None:
    """So that what is tried above could be had."""
    runtime = ProcessRuntime(around.home.root, accounts=Accounts("root"))
    got = around.loot(runtime, "other", shared)
    assert around.pids.keys() <= got.keys()
    assert str(around.home.servers_file) in got


def test_no_two_of_them_run_as_the_same_user_and_postgres_as_its_own(around: Around) -> None:
    users = {name: psutil.Process(pid).uids().real for name, pid in around.pids.items()}
    own = {users[name] for name in ("postgres", *around.neighbours)}
    assert len(own) == 3
    assert not own & {0, 65534}


def test_what_the_parts_write_is_for_their_user_alone(around: Around) -> None:
    open_to_others = [
        path
        for path in around.home.root.rglob("*")
        if path.is_file() and path.stat().st_mode & 0o077 and "replicas" not in path.parts
    ]
    assert open_to_others == []
