"""Parts and supervisors that die: what comes back, what is found, and what is left alone."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from stack.home.folder import project_root
from stack.stack_errors import StackError
from stack.stack_status import stack_status
from tests.support.faults.shifted_clock import shifted_clock
from tests.support.stack.small_stack import READY_AND_STAYS, SmallStack, alive, kill
from tests.support.stack.waiting import eventually


def test_what_is_killed_comes_back_and_the_data_with_it(small_stack: SmallStack) -> None:
    small_stack.up()
    small_stack.remember("first")
    before = {name: small_stack.pid(name) for name in ("worker1", "postgres", "valkey")}
    for pid in before.values():
        kill(pid)

    def back() -> bool:
        parts = {part.name: part for part in stack_status(small_stack.home).parts if part.name in before}
        return all(part.state == "running" and part.pid != before[name] for name, part in parts.items())

    eventually(back)
    assert small_stack.remembered()[0] == ["first"]
    worker = next(part for part in stack_status(small_stack.home).parts if part.name == "worker1")
    assert (worker.restarts, worker.error) == (1, "")


def test_the_log_of_a_part_stays_small_while_it_is_written(small_stack: SmallStack) -> None:
    small_stack.scripts["worker1"] = "head -c 500000 /dev/zero | tr '\\0' x; " + READY_AND_STAYS
    small_stack.environ["ROLLWAY_LOG_MEGABYTES"] = "0.1"
    small_stack.up()
    before, log = small_stack.pid("worker1"), small_stack.home.log("worker1")
    eventually(lambda: log.stat().st_size == 0)
    assert 0 < log.with_name("worker1.log.1").stat().st_size <= 200 * 1024
    assert small_stack.pid("worker1") == before


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("a disaster Error\nbye", "a disaster Error"),
        ("PANIC: No space left on device\nFATAL: shut down\nbye", "PANIC: No space left on device"),
    ],
    ids=["an error", "a full disk"],
)
def test_a_part_that_keeps_crashing_is_called_crashing_and_says_why(
    small_stack: SmallStack, tmp_path: Path, said: str, why: str
) -> None:
    broken = tmp_path / "broken"
    small_stack.scripts["worker1"] = (
        f"test -e '{broken}' && printf '{said}\\n' && exit 3; echo it is ready.; exec sleep 1000"
    )
    small_stack.up()
    broken.touch()
    kill(small_stack.pid("worker1"))

    def worker() -> tuple[str, str]:
        return next((part.state, part.error) for part in stack_status(small_stack.home).parts if part.name == "worker1")

    eventually(lambda: worker() == ("crashing", why))
    assert stack_status(small_stack.home).running


def test_down_finds_what_a_killed_supervisor_left(small_stack: SmallStack) -> None:
    small_stack.up()
    pids = small_stack.pids()
    kill(small_stack.state().supervisor.pid)
    eventually(lambda: stack_status(small_stack.home).phase == "lost")

    assert small_stack.down()
    assert alive(pids) == []


def test_down_finds_everything_after_the_clock_of_the_machine_was_set(small_stack: SmallStack) -> None:
    small_stack.up()
    pids = small_stack.pids()
    command = [sys.executable, "-m", "cli.main", "down"]
    with shifted_clock() as clock:
        clock.set(7200)
        environ = {**os.environ, **clock.environment, "ROLLWAY_HOME": str(small_stack.home.root)}
        said = subprocess.run(command, cwd=project_root(), env=environ, capture_output=True, text=True, check=True)

    assert "Nothing is running" not in said.stdout
    assert alive(pids) == []


@pytest.mark.parametrize("whose", ["supervisor", "parts"])
def test_a_recycled_pid_is_left_alone(small_stack: SmallStack, whose: str) -> None:
    small_stack.up()
    state = small_stack.state()
    small_stack.down()
    small_stack.said.clear()
    with subprocess.Popen(["sleep", "1000"]) as bystander:
        recycled = replace(state.supervisor, pid=bystander.pid, started=state.supervisor.started - 60)
        parts = tuple(replace(part, process=recycled) for part in state.parts)
        stale = replace(state, supervisor=recycled) if whose == "supervisor" else replace(state, parts=parts)
        small_stack.home.state_file.write_text(_json(stale))
        (small_stack.home.postgres / "data" / "postmaster.pid").write_text(f"{bystander.pid}\n")
        try:
            status = small_stack.up()
            assert bystander.poll() is None
            assert status.running
            assert status.supervisor_pid != bystander.pid
            assert "already running" not in small_stack.texts()
        finally:
            bystander.kill()


def _json(state: object) -> str:
    from stack.home.stack_state import _STATE  # noqa: PLC0415

    return _STATE.dump_json(state).decode()  # type: ignore[arg-type]


def test_a_part_that_does_not_start_ends_the_start_in_one_sentence_and_leaves_nothing(small_stack: SmallStack) -> None:
    small_stack.scripts["worker1"] = "echo ModuleNotFoundError: no such app; exit 1"

    with pytest.raises(
        StackError, match=r"worker1 does not start: ModuleNotFoundError: no such app \(its log is .*\)\."
    ):
        small_stack.up()
    assert not small_stack.home.state_file.exists()
    assert not [process for process in psutil.process_iter(["cwd"]) if _works_in(process, small_stack.home.root)]


def _works_in(process: psutil.Process, folder: Path) -> bool:
    cwd = process.info["cwd"]
    return bool(cwd) and Path(cwd).is_relative_to(folder)


def test_ctrl_c_while_it_starts_stops_everything(small_stack: SmallStack) -> None:
    script = (
        "import signal, sys; from pathlib import Path; from stack.home.folder import Home;"
        "from tests.support.stack.small_stack import SmallStack;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"  # as at a terminal, wherever these tests run
        "SmallStack(Home(Path(sys.argv[1])), scripts={'worker1': 'exec sleep 1000'}).up()"
    )
    command = [sys.executable, "-c", script, str(small_stack.home.root)]
    with subprocess.Popen(command, cwd=project_root(), stderr=subprocess.DEVNULL) as starting:
        eventually(lambda: stack_status(small_stack.home).parts and small_stack.pid("worker1"))
        pids = small_stack.pids()
        starting.send_signal(signal.SIGINT)
        assert starting.wait(timeout=600) != 0

    assert alive(pids) == []
