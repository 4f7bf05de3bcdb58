"""Parts and supervisors that die: what comes back, what is found, and what is left alone."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from stack.errors import StackError
from stack.home.folder import project_root
from stack.status import stack_status
from tests.support.faults.shifted_clock import shifted_clock
from tests.support.stack.small_stack import READY_AND_STAYS, SmallStack, alive, kill
from tests.support.stack.waiting import eventually


def test_what_is_killed_comes_back_and_the_data_with_it(small: SmallStack) -> None:
    small.up()
    small.remember("first")
    before = {name: small.pid(name) for name in ("worker1", "postgres", "valkey")}
    for pid in before.values():
        kill(pid)

    def back() -> bool:
        parts = {part.name: part for part in stack_status(small.home).parts if part.name in before}
        return all(part.state == "running" and part.pid != before[name] for name, part in parts.items())

    eventually(back)
    assert small.remembered()[0] == ["first"]
    worker = next(part for part in stack_status(small.home).parts if part.name == "worker1")
    assert (worker.restarts, worker.error) == (1, "")


def test_the_log_of_a_part_stays_small_while_it_is_written(small: SmallStack) -> None:
    small.scripts["worker1"] = "head -c 500000 /dev/zero | tr '\\0' x; " + READY_AND_STAYS
    small.environ["ROLLWAY_LOG_MEGABYTES"] = "0.1"
    small.up()
    before, log = small.pid("worker1"), small.home.log("worker1")
    eventually(lambda: log.stat().st_size == 0)
    assert 0 < log.with_name("worker1.log.1").stat().st_size <= 200 * 1024
    assert small.pid("worker1") == before


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("a disaster Error\nbye", "a disaster Error"),
        ("PANIC: No space left on device\nFATAL: shut down\nbye", "PANIC: No space left on device"),
    ],
    ids=["an error", "a full disk"],
)
def test_a_part_that_keeps_crashing_is_called_crashing_and_says_why(
    small: SmallStack, tmp_path: Path, said: str, why: str
) -> None:
    broken = tmp_path / "broken"
    small.scripts["worker1"] = f"test -e '{broken}' && printf '{said}\\n' && exit 3; echo it is ready.; exec sleep 1000"
    small.up()
    broken.touch()
    kill(small.pid("worker1"))

    def worker() -> tuple[str, str]:
        return next((part.state, part.error) for part in stack_status(small.home).parts if part.name == "worker1")

    eventually(lambda: worker() == ("crashing", why))
    assert stack_status(small.home).running


def test_down_finds_what_a_killed_supervisor_left(small: SmallStack) -> None:
    small.up()
    pids = small.pids()
    kill(small.state().supervisor.pid)
    eventually(lambda: stack_status(small.home).phase == "lost")

    assert small.down()
    assert alive(pids) == []


def test_down_finds_everything_after_the_clock_of_the_machine_was_set(small: SmallStack) -> None:
    small.up()
    pids = small.pids()
    command = [sys.executable, "-m", "cli.main", "down"]
    with shifted_clock() as clock:
        clock.set(7200)
        environ = {**os.environ, **clock.environment, "ROLLWAY_HOME": str(small.home.root)}
        said = subprocess.run(command, cwd=project_root(), env=environ, capture_output=True, text=True, check=True)

    assert "Nothing is running" not in said.stdout
    assert alive(pids) == []


@pytest.mark.parametrize("whose", ["supervisor", "parts"])
def test_a_recycled_pid_is_left_alone(small: SmallStack, whose: str) -> None:
    small.up()
    state = small.state()
    small.down()
    small.said.clear()
    with subprocess.Popen(["sleep", "1000"]) as bystander:
        recycled = replace(state.supervisor, pid=bystander.pid, started=state.supervisor.started - 60)
        parts = tuple(replace(part, process=recycled) for part in state.parts)
        stale = replace(state, supervisor=recycled) if whose == "supervisor" else replace(state, parts=parts)
        small.home.state_file.write_text(_json(stale))
        (small.home.postgres / "data" / "postmaster.pid").write_text(f"{bystander.pid}\n")
        try:
            status = small.up()
            assert bystander.poll() is None
            assert status.running
            assert status.supervisor_pid != bystander.pid
            assert "already running" not in small.texts()
        finally:
            bystander.kill()


def _json(state: object) -> str:
    from stack.home.state import _STATE  # noqa: PLC0415

    return _STATE.dump_json(state).decode()  # type: ignore[arg-type]


def test_a_part_that_does_not_start_ends_the_start_in_one_sentence_and_leaves_nothing(small: SmallStack) -> None:
    small.scripts["worker1"] = "echo ModuleNotFoundError: no such app; exit 1"

    with pytest.raises(
        StackError, match=r"worker1 does not start: ModuleNotFoundError: no such app \(its log is .*\)\."
    ):
        small.up()
    assert not small.home.state_file.exists()
    assert not [process for process in psutil.process_iter(["cwd"]) if _works_in(process, small.home.root)]


def _works_in(process: psutil.Process, folder: Path) -> bool:
    cwd = process.info["cwd"]
    return bool(cwd) and Path(cwd).is_relative_to(folder)


def test_ctrl_c_while_it_starts_stops_everything(small: SmallStack) -> None:
    script = (
        "import signal, sys; from pathlib import Path; from stack.home.folder import Home;"
        "from tests.support.stack.small_stack import SmallStack;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"  # as at a terminal, wherever these tests run
        "SmallStack(Home(Path(sys.argv[1])), scripts={'worker1': 'exec sleep 1000'}).up()"
    )
    command = [sys.executable, "-c", script, str(small.home.root)]
    with subprocess.Popen(command, cwd=project_root(), stderr=subprocess.DEVNULL) as starting:
        eventually(lambda: stack_status(small.home).parts and small.pid("worker1"))
        pids = small.pids()
        starting.send_signal(signal.SIGINT)
        assert starting.wait(timeout=15) != 0

    assert alive(pids) == []
