"""Hosts are prepared by a command before a rollout touches a replica: real workers of several hosts, and real commands.

Each command writes into a shared file when it begins and how it ends, and waits for a file that lets it go.
"""

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from runtime.process.termination import stop_all
from tests.support.stack.stack import POLICY, ROOT, Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

HOSTS = {"a": "127.0.0.1", "b": "127.0.0.2", "c": "127.0.0.3"}
SCRIPT = """
import os, pathlib, sys, time
folder, name = pathlib.Path(sys.argv[1]), os.environ["HOST"]

def note(word):
    with (folder / "log").open("a") as log:
        log.write(f"{word} {name}\\n")

note("begin")
print("loading", flush=True)
while not (folder / f"go-{name}").exists() and not (folder / "go").exists():
    time.sleep(0.05)
code = int((folder / "code").read_text()) if (folder / "code").exists() else 0
print("disk full" if code else "all there", flush=True)
note("end")
sys.exit(code)
"""


class Stage:
    """A fleet whose revisions are prepared, and what their commands did."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self.fleet, self.folder = fleet, folder
        (folder / "prepare.py").write_text(SCRIPT)

    def home(self, host: str) -> Path:
        return self.folder / f"home-{host}"

    def start(self, host: str, name: str | None = None) -> None:
        environment = {"ROLLWAY_HOME": str(self.home(host)), "ROLLWAY_HOST_ADDRESS": HOSTS[host]}
        self.fleet.start_workers(name or host, host=host, **environment)
        eventually(lambda: self.fleet.rows("SELECT FROM hosts WHERE name = %s", host), what="the host to be known")

    def add(self, revision: str, **more: Any) -> None:
        spec = {
            "command": [sys.executable, str(ROOT / "examples" / "http_service.py")],
            "env": {"VERSION": revision},
            "health_check": {"interval_seconds": 0.5},
            "drain_seconds": 0.2,
        }
        command = shlex.join([sys.executable, str(self.folder / "prepare.py"), str(self.folder)])
        if more.pop("is_prepared", True):
            spec["prepare"] = {"command": command, **more}
        self.fleet.ask("add_revision", deployment="web", name=revision, spec=spec)

    def deploy(self, replicas: int) -> None:
        """v1 runs, which wants no preparation; v2 does."""
        self.fleet.ask("create_deployment", deployment="web", desired_replicas=replicas, policy=POLICY)
        self.add("v1", is_prepared=False)
        self.fleet.activate("web", "v1")
        self.fleet.wait_until_ready("web", "v1", replicas)
        self.add("v2")

    def let_go(self, host: str | None = None) -> None:
        (self.folder / (f"go-{HOSTS[host]}" if host else "go")).touch()

    def log(self) -> list[str]:
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def began(self, count: int) -> Callable[[], bool]:
        return lambda: sum(line.startswith("begin") for line in self.log()) == count

    def states(self) -> list[str]:
        return [row["state"] for row in self.fleet.rows("SELECT state FROM preparations ORDER BY host")]

    def commands(self) -> list[psutil.Process]:
        wanted = str(self.folder / "prepare.py")
        return [each for each in psutil.process_iter(["cmdline"]) if wanted in (each.info["cmdline"] or ())]

    def untouched(self, replicas: int) -> bool:
        """No replica was created or drained since v1 is there."""
        routes = self.fleet.all_routes("web")
        return len(routes) == replicas and {route["status"] for route in routes} == {"healthy"}

    def outcomes(self) -> list[str | None]:
        return [rollout["outcome"] for rollout in self.fleet.rollouts("web")]


@pytest.fixture
def stage(fleet: Fleet, tmp_path: Path) -> Iterator[Stage]:
    folder = tmp_path / "stage"
    folder.mkdir()
    made = Stage(fleet, folder)
    fleet.start_beat()
    yield made
    made.let_go()
    for host in HOSTS:
        stop_all(made.home(host), grace_seconds=2)


def test_two_hosts_at_a_time_are_prepared_before_any_replica_is_touched_and_never_twice(stage: Stage) -> None:
    fleet = stage.fleet
    for host in HOSTS:
        stage.start(host)
    stage.deploy(3)
    fleet.activate("web", "v2")
    eventually(stage.began(2), what="two hosts to begin")
    eventually(lambda: sorted(stage.states()) == ["running", "running", "waiting"], what="their rows")
    assert stage.began(2)()
    query = "SELECT host FROM preparations WHERE state = 'running' AND words = 'loading' ORDER BY host"
    running = eventually(lambda: [row["host"] for row in fleet.rows(query)], what="the last line of its output")
    assert stage.untouched(3)
    assert str(fleet.state("web")["sub_step"]) == "preparing"
    stage.let_go(running[0])
    eventually(stage.began(3), what="the third to follow")
    assert stage.untouched(3)
    stage.let_go()
    fleet.wait_until_ready("web", "v2", 3)
    assert sorted(stage.log()) == sorted(f"{word} {address}" for word in ("begin", "end") for address in HOSTS.values())
    fleet.activate("web", "v1")
    fleet.wait_until_ready("web", "v1", 3)
    fleet.ask("undo", deployment="web")
    fleet.wait_until_ready("web", "v2", 3)
    assert stage.began(3)(), "prepared hosts are not prepared again"


def test_where_it_fails_nothing_was_moved_and_a_retry_runs_it_again(stage: Stage) -> None:
    stage.start("a")
    stage.start("b")
    stage.deploy(2)
    (stage.folder / "code").write_text("3")
    stage.let_go()
    stage.fleet.activate("web", "v2")
    eventually(lambda: stage.outcomes() == ["rolled_back"], what="the end of the rollout")
    assert stage.untouched(2)
    (rollout,) = stage.fleet.rollouts("web")
    assert rollout["back_reason"].startswith("host ")
    words = "could not be prepared: its process ended with exit code 3; its log ends: loading / disk full"
    assert rollout["back_reason"].endswith(words)
    (stage.folder / "code").unlink()
    stage.fleet.ask("retry", deployment="web")
    stage.fleet.wait_until_ready("web", "v2", 2)
    assert stage.outcomes() == ["rolled_back", "completed"]


def test_a_command_outlives_its_worker_and_one_that_died_with_it_is_run_again(stage: Stage) -> None:
    stage.start("a")
    stage.deploy(1)
    stage.fleet.activate("web", "v2")
    eventually(stage.began(1), what="it to begin")
    stage.fleet.kill("a")
    stage.start("a", "again")
    eventually(lambda: " ready." in stage.fleet.log("again"))
    assert len(stage.commands()) == 1
    stage.fleet.kill("again")
    for process in stage.commands():
        process.kill()
    stage.start("a", "last")
    eventually(stage.began(2), what="it to begin again")
    assert (len(stage.commands()), stage.untouched(1)) == (1, True)
    stage.let_go()
    stage.fleet.wait_until_ready("web", "v2", 1)
    assert sum(line.startswith("begin") for line in stage.log()) == 2


def test_an_abort_ends_the_command_and_a_pause_only_keeps_what_follows(stage: Stage) -> None:
    stage.start("a")
    stage.deploy(1)
    stage.fleet.activate("web", "v2")
    eventually(stage.began(1), what="it to begin")
    stage.fleet.ask("pause", deployment="web")
    stage.let_go()
    eventually(lambda: stage.states() == ["done"], what="its end")
    assert (stage.untouched(1), stage.fleet.state("web")["sub_step"]) == (True, "preparing")
    stage.fleet.ask("resume", deployment="web")
    stage.fleet.wait_until_ready("web", "v2", 1)
    (stage.folder / "go").unlink()
    stage.add("v3", timeout_seconds=600)
    stage.fleet.activate("web", "v3")
    eventually(stage.began(2), what="the next one to begin")
    stage.fleet.ask("abort", deployment="web")
    eventually(lambda: not stage.commands(), what="it to be ended")
    eventually(lambda: stage.outcomes() == ["completed", "rolled_back"], what="the end of the rollout")
    eventually(lambda: stage.states() == ["done"], what="its row to be dropped")
    assert stage.fleet.answers("web") == ["v2"]


def test_one_that_takes_too_long_is_killed_and_a_rollout_to_no_replicas_prepares_nothing(stage: Stage) -> None:
    stage.start("a")
    stage.deploy(1)
    stage.add("v3", timeout_seconds=1)
    stage.fleet.activate("web", "v3")
    eventually(lambda: stage.outcomes() == ["rolled_back"], what="the end of the rollout")
    assert (
        "could not be prepared: it took longer than 1 s; its log ends: loading"
        in (stage.fleet.rollouts("web")[0]["back_reason"])
    )
    eventually(lambda: not stage.commands(), what="it to be ended")
    stage.fleet.ask("scale", deployment="web", desired_replicas=0)
    stage.fleet.wait_until_ready("web", "v1", 0)
    began = len(stage.log())
    stage.fleet.activate("web", "v2")
    eventually(lambda: stage.outcomes() == ["rolled_back", "completed"], what="the rollout to nothing")
    assert len(stage.log()) == began
    stage.fleet.ask("scale", deployment="web", desired_replicas=1)
    eventually(stage.began(2), what="the first replica to wait for its host")
    (route,) = stage.fleet.routes("web", "provisioning")
    assert route["started_at"] is None
    stage.let_go()
    stage.fleet.wait_until_ready("web", "v2", 1)


def test_a_host_that_joins_later_is_prepared_before_its_first_replica_starts(stage: Stage) -> None:
    stage.start("a")
    stage.let_go("a")
    stage.deploy(1)
    stage.fleet.activate("web", "v2")
    stage.fleet.wait_until_ready("web", "v2", 1)
    stage.start("b")
    stage.fleet.ask("scale", deployment="web", desired_replicas=2)
    eventually(stage.began(2), what="the new host to begin")
    eventually(
        lambda: (
            [row["status_reason"] for row in stage.fleet.routes("web", "provisioning")]
            == ["preparing its host: loading"]
        ),
        what="the replica to say what it waits for",
    )
    stage.let_go()
    stage.fleet.wait_until_ready("web", "v2", 2)
    assert sorted(route["host"] for route in stage.fleet.routes("web")) == ["a", "b"]
