import signal
import socket
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from stack.connect import export_urls
from stack.errors import StackError
from stack.home import project_root
from stack.settings import Ports
from stack.status import stack_status
from tests.support.small_stack import SmallStack, alive
from tests.support.waiting import eventually

pytestmark = pytest.mark.e2e


def kill(pid: int) -> None:
    psutil.Process(pid).send_signal(signal.SIGKILL)


def test_a_stack_comes_up_part_by_part_and_keeps_its_data_over_down_and_up(small: SmallStack) -> None:
    status = small.up()

    assert status.running
    assert {part.name: part.state for part in status.parts} == dict.fromkeys(
        ("postgres", "valkey", "worker1", "beat"), "running"
    )
    assert {notice.part for notice in small.said[:2]} == {"postgres", "valkey"}, "the others wait for both"
    small.remember("first")
    ports = [part.address for part in status.parts]
    pids = small.pids()

    assert small.down()
    assert alive(pids) == []
    assert not stack_status(small.home).running

    again = small.up()
    assert small.remembered() == (["first"], "first")
    assert [part.address for part in again.parts] == ports
    # a folder whose parents are private stays so
    assert stat.S_IMODE(small.home.root.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(small.home.state_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(small.home.servers_file.stat().st_mode) == 0o600


def test_up_twice_is_harmless_and_down_twice_too(small: SmallStack) -> None:
    first = small.up()
    second = small.up()

    assert "already running" in small.texts()
    assert [part.pid for part in second.parts] == [part.pid for part in first.parts]
    assert small.down()
    assert not small.down()


def test_two_ups_at_once_make_one_stack(small: SmallStack) -> None:
    pids: list[int | None] = []
    threads = [threading.Thread(target=lambda: pids.append(small.up().supervisor_pid)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(pids) == 2
    assert pids[0] == pids[1]
    assert any("is at work, waiting" in text for text in small.texts())


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


def test_a_part_that_keeps_crashing_is_called_crashing_and_says_why(small: SmallStack, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    small.scripts["worker1"] = (
        f"test -e '{broken}' && echo a disaster Error && exit 3; echo it is ready.; exec sleep 1000"
    )
    small.up()
    broken.touch()
    kill(small.pid("worker1"))

    def worker() -> tuple[str, str]:
        return next((part.state, part.error) for part in stack_status(small.home).parts if part.name == "worker1")

    eventually(lambda: worker() == ("crashing", "a disaster Error"))
    assert stack_status(small.home).running


def test_down_finds_what_a_killed_supervisor_left(small: SmallStack) -> None:
    small.up()
    pids = small.pids()
    kill(small.state().supervisor.pid)
    eventually(lambda: stack_status(small.home).phase == "lost")

    assert small.down()
    assert alive(pids) == []


def test_up_after_a_killed_supervisor_starts_anew(small: SmallStack) -> None:
    small.up()
    small.remember("first")
    pids = small.pids()
    kill(small.state().supervisor.pid)
    eventually(lambda: stack_status(small.home).phase == "lost")

    assert small.up().running
    assert alive(pids) == []
    assert small.remembered()[0] == ["first"]


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
    from stack.state import _STATE  # noqa: PLC0415

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
        "import signal, sys; from pathlib import Path; from stack.home import Home;"
        "from tests.support.small_stack import SmallStack;"
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


def test_a_remembered_port_that_is_taken_moves_and_an_asked_one_is_refused(small: SmallStack) -> None:
    status = small.up()
    small.remember("first")
    port = next(int(part.address.split(":")[1].split("/")[0]) for part in status.parts if part.name == "postgres")
    small.down()
    with socket.create_server(("127.0.0.1", port)):
        small.ports = Ports(postgres=port)
        with pytest.raises(
            StackError, match=f"Port {port} on 127.0.0.1 is in use: choose another with --postgres-port"
        ):
            small.up()
        small.ports = Ports()
        small.up()

    assert any(f"port {port} of postgres is in use by another program" in text for text in small.texts())
    assert small.remembered()[0] == ["first"]


def test_lost_passwords_are_made_anew(small: SmallStack) -> None:
    small.up()
    small.remember("first")
    small.down()
    small.home.servers_file.unlink()

    small.up()
    assert small.remembered()[0] == ["first"]


def test_servers_of_ones_own_replace_the_embedded_ones(small: SmallStack, tmp_path: Path) -> None:
    small.up()
    state = small.state()
    other = SmallStack(replace(small.home, root=tmp_path / "other"))
    other.environ = {"DATABASE_URL": state.database_url, "REDIS_URL": state.redis_url}
    try:
        status = other.up()
        states = {part.name: (part.state, part.pid is not None) for part in status.parts}
        assert states["postgres"] == ("external", False)
        assert states["redis"] == ("external", False)
        assert states["worker1"] == ("running", True)
        assert not list((tmp_path / "other" / "postgres").iterdir())
    finally:
        other.down()
    assert stack_status(small.home).running


def test_commands_find_the_servers_of_a_running_stack_and_say_when_there_is_none(small: SmallStack) -> None:
    environ = {"ROLLWAY_HOME": str(small.home.root)}
    with pytest.raises(StackError, match="Rollway's stack is not running: start it with 'rollway up'"):
        export_urls(environ)
    small.up()

    export_urls(environ)
    assert environ["DATABASE_URL"] == small.state().database_url
    assert environ["REDIS_URL"] == small.state().redis_url
