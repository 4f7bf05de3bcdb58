import socket
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from stack.home.server_settings import Ports, load_settings
from stack.stack_errors import StackError
from stack.stack_status import export_urls, stack_status
from tests.support.stack.environment import ISOLATED
from tests.support.stack.small_stack import SmallStack, alive

pytestmark = pytest.mark.e2e


def test_a_stack_comes_up_part_by_part_and_keeps_its_data_over_down_and_up(small_stack: SmallStack) -> None:
    status = small_stack.up()

    assert status.running
    assert {part.name: part.state for part in status.parts} == dict.fromkeys(
        ("postgres", "valkey", "worker1", "beat"), "running"
    )
    parts = [
        notice.part for notice in small_stack.said if notice.part != "replicas"
    ]  # those are told of who is not root
    assert set(parts[:2]) == {"postgres", "valkey"}, "the others wait for both"
    small_stack.remember("first")
    ports = [part.address for part in status.parts]
    pids = small_stack.pids()

    assert small_stack.down()
    assert alive(pids) == []
    assert not stack_status(small_stack.home).running

    again = small_stack.up()
    assert small_stack.remembered() == (["first"], "first")
    assert [part.address for part in again.parts] == ports
    # a folder whose parents are private stays so
    assert stat.S_IMODE(small_stack.home.root.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(small_stack.home.state_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(small_stack.home.servers_file.stat().st_mode) == 0o600


def test_up_twice_is_harmless_and_down_twice_too(small_stack: SmallStack) -> None:
    first = small_stack.up()
    second = small_stack.up()

    assert "already running" in small_stack.texts()
    assert [part.pid for part in second.parts] == [part.pid for part in first.parts]
    assert small_stack.down()
    assert not small_stack.down()


def test_two_ups_at_once_make_one_stack(small_stack: SmallStack) -> None:
    pids: list[int | None] = []
    threads = [threading.Thread(target=lambda: pids.append(small_stack.up().supervisor_pid)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(pids) == 2
    assert pids[0] == pids[1]
    assert any("is at work, waiting" in text for text in small_stack.texts())


def test_a_remembered_port_that_is_taken_moves_and_an_asked_one_is_refused(small_stack: SmallStack) -> None:
    small_stack.up()
    small_stack.remember("first")
    settings = load_settings(small_stack.home)
    assert settings
    port = settings.ports.flower
    small_stack.down()
    with socket.create_server(("127.0.0.1", port)):
        small_stack.ports = Ports(flower=port)
        with pytest.raises(StackError, match=f"Port {port} on 127.0.0.1 is in use: choose another with --flower-port"):
            small_stack.up()
        small_stack.ports = Ports()
        small_stack.up()

    assert any(f"port {port} of flower is in use, so it moves" in text for text in small_stack.texts())
    assert small_stack.remembered()[0] == ["first"]


def test_lost_passwords_are_made_anew(small_stack: SmallStack) -> None:
    small_stack.up()
    small_stack.remember("first")
    small_stack.down()
    small_stack.home.servers_file.unlink()

    small_stack.up()
    assert small_stack.remembered()[0] == ["first"]


def test_servers_of_ones_own_replace_the_embedded_ones(small_stack: SmallStack, tmp_path: Path) -> None:
    small_stack.up()
    state = small_stack.state()
    other = SmallStack(replace(small_stack.home, root=tmp_path / "other"))
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
    assert stack_status(small_stack.home).running


def test_commands_find_the_servers_of_a_running_stack_and_say_when_there_is_none(small_stack: SmallStack) -> None:
    environ = {"ROLLWAY_HOME": str(small_stack.home.root)}
    with pytest.raises(
        StackError, match=f"No stack of Rollway runs in {small_stack.home.root}: 'rollway up' starts one"
    ):
        export_urls(environ)
    small_stack.up()

    export_urls(environ)
    assert environ["DATABASE_URL"] == small_stack.state().database_url
    assert environ["REDIS_URL"] == small_stack.state().redis_url


def test_up_after_a_stop_that_keeps_replicas_takes_what_the_shell_says_and_else_what_was(
    small_stack: SmallStack,
) -> None:
    """Nothing but Envoy runs, so all may be otherwise; what a shell leaves out may be where callers come in."""
    small_stack.environ = {"ROLLWAY_HOST": "rack-7", "ROLLWAY_SLOTS": "2", "ROLLWAY_LOG_FILES": "3"}
    small_stack.up()
    small_stack.down(keep_replicas=True)
    small_stack.environ = {"ROLLWAY_SLOTS": "4", "ROLLWAY_LOG_FILES": ""}
    small_stack.said.clear()
    small_stack.up()
    assert small_stack.state().environment == {**ISOLATED, "ROLLWAY_HOST": "rack-7", "ROLLWAY_SLOTS": "4"}
    assert "as before: ROLLWAY_HOST; set one to nothing to forget it" in small_stack.texts()


def test_an_up_that_fails_after_a_stop_that_keeps_replicas_leaves_them_and_what_they_are_found_by(
    small_stack: SmallStack,
) -> None:
    small_stack.up()
    small_stack.down(keep_replicas=True)
    small_stack.environ = {"ROLLWAY_HOST": "another"}
    with pytest.raises(StackError, match=r"belongs to the host .*: leave ROLLWAY_HOST as it was"):
        small_stack.up()
    small_stack.environ = {"ROLLWAY_SLOTS": "none"}
    small_stack.scripts["worker1"] = "echo ValueError: no number; exit 1"
    with pytest.raises(StackError, match="worker1 does not start: ValueError: no number"):
        small_stack.up()
    assert small_stack.state().phase == "serving"
    assert small_stack.state().environment == ISOLATED
