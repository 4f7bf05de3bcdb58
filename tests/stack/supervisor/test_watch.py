"""Whether the threads of a server answer: two sockets at one port, as threads have them, and an Envoy that hangs."""

import ctypes
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil
import pytest

from runtime.machine.identity import identify, send
from stack.home.server_settings import HOST, Ports, ServerSettings
from stack.home.stack_state import PartState
from stack.part_specs import StackPart
from stack.parts.envoy import envoy_parts
from stack.supervisor.child.supervised import Child
from stack.supervisor.child.watch import Watch
from tests.support.stack.ports import free_port
from tests.support.stack.small_stack import made_home
from tests.support.stack.waiting import eventually

_PAUSE = 0.0
_MANY_LOOKS = 40


@dataclass
class Threads:
    """Two sockets that share a port; who connects meets one of them by chance."""

    port: int
    listening: list[socket.socket]

    def answer(self, number: int) -> None:
        """All that wait at this one get an answer."""
        while True:
            try:
                connection, _ = self.listening[number].accept()
            except BlockingIOError:
                return
            connection.sendall(b"HTTP/1.1 404 Not Found\r\n\r\n")
            connection.close()


@pytest.fixture
def threads() -> Iterator[Threads]:
    with ExitStack() as left:
        made = Threads(free_port(), [left.enter_context(socket.socket()) for _ in range(2)])
        for listening in made.listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.settimeout(0)
            listening.bind((HOST, made.port))
            listening.listen(1000)
        yield made


def test_a_server_of_which_every_thread_answers_is_not_stuck(threads: Threads) -> None:
    watch = Watch(threads.port, _PAUSE)
    for _ in range(_MANY_LOOKS):
        watch.look()
        assert not watch.is_stuck
        for number in (0, 1):
            threads.answer(number)
    watch.forget()


def test_one_that_answers_late_is_not_stuck(threads: Threads) -> None:
    """On a busy machine: each answer comes some looks later."""
    watch = Watch(threads.port, _PAUSE)
    for look in range(_MANY_LOOKS):
        watch.look()
        assert not watch.is_stuck
        if look % 5 == 4:
            for number in (0, 1):
                threads.answer(number)
    watch.forget()


def test_one_of_which_a_thread_answers_nothing_is_stuck_until_another_process_runs(threads: Threads) -> None:
    watch = Watch(threads.port, _PAUSE)
    looks = 0
    while not watch.is_stuck:
        watch.look()
        threads.answer(0)
        looks += 1
        assert looks < _MANY_LOOKS
    assert looks >= 7
    watch.forget()
    assert not watch.is_stuck
    watch.look()
    assert not watch.is_stuck
    watch.forget()


def test_where_nobody_listens_there_is_nothing_to_wait_for(threads: Threads) -> None:
    for listening in threads.listening:
        listening.close()
    watch = Watch(threads.port, _PAUSE)
    for _ in range(_MANY_LOOKS):
        watch.look()
    assert not watch.is_stuck
    watch.forget()


_BOOTSTRAP = """
admin: {{ address: {{ pipe: {{ path: envoy.sock }} }} }}
static_resources:
  listeners:
    - name: callers
      address: {{ socket_address: {{ address: 127.0.0.1, port_value: {callers} }} }}
      filter_chains: &answer
        - filters:
            - name: envoy.filters.network.direct_response
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.direct_response.v3.Config
                response: {{ inline_string: "here" }}
    - name: watched
      address: {{ socket_address: {{ address: 127.0.0.1, port_value: {watched} }} }}
      filter_chains: *answer
"""


@dataclass
class Hanging:
    """An Envoy under a supervisor's eyes, with two threads, that asks no server for anything."""

    child: Child
    callers: int

    @property
    def pid(self) -> int:
        process = self.child.state().process
        assert process is not None
        return process.pid

    def look(self) -> None:
        """As a supervisor does it."""
        due = self.child.waiting_until
        if due is not None and due <= time.monotonic():
            self.child.start(lambda: None)
        self.child.check()
        time.sleep(0.01)

    def is_up(self) -> bool:
        self.look()
        return self.child.ready

    def is_replaced(self) -> bool:
        return self.is_up() and self.child.restarts == 1


@pytest.fixture
def envoy(tmp_path: Path) -> Iterator[Hanging]:
    home, ports = made_home(tmp_path), Ports(envoy=free_port(), envoy_stats=free_port())
    (part,) = envoy_parts(home, ServerSettings(ports=ports), 1)
    (home.envoy / "envoy.yaml").write_text(_BOOTSTRAP.format(callers=ports.envoy, watched=ports.envoy_stats))
    made = Hanging(Child(part, home.log("envoy")), ports.envoy)
    try:
        eventually(made.is_up, within=20)
        yield made
    finally:
        send(made.child.state().process, signal.SIGKILL)
        made.child.reap()
        made.child.ports.close()


def hang_a_thread(pid: int, port: int) -> None:
    """Do what somebody can who was given a socket that it listens at: a thread waits there for the next caller."""
    listening = [each.fd for each in psutil.Process(pid).net_connections("tcp") if each.laddr.port == port]
    assert len(listening) == 2
    process = os.pidfd_open(pid)
    pidfd_getfd = partial(ctypes.CDLL(None, use_errno=True).syscall, 438)
    taken = pidfd_getfd(process, listening[0], 0)
    os.close(process)
    if taken < 0:
        pytest.skip("this system lets nobody take a descriptor")
    os.set_blocking(taken, True)
    os.close(taken)
    for _ in range(20):  # the system gives the thread one of them
        with suppress(OSError), socket.create_connection((HOST, port), timeout=0.2) as caller:
            caller.recv(1)


@pytest.mark.parametrize("stop", [hang_a_thread, lambda pid, _: os.kill(pid, signal.SIGSTOP)], ids=["a thread", "all"])
def test_an_envoy_that_stands_still_is_replaced_within_seconds(
    envoy: Hanging, stop: Callable[[int, int], None]
) -> None:
    before = envoy.pid
    stop(before, envoy.callers)
    eventually(envoy.is_replaced, within=15)
    assert envoy.pid != before


def test_sockets_are_taken_over_from_a_process_that_was_started_with_the_same_name(tmp_path: Path) -> None:
    (part,) = envoy_parts(made_home(tmp_path), ServerSettings(), 1)
    assert [hands_over(part, name) for name in ("", "other", part.hot_restart)] == [False, False, True]
    assert not hands_over(replace(part, hot_restart=""), "")


def hands_over(part: StackPart, name: str) -> bool:
    """Whether one does that was started by that name."""
    process = identify(os.getpid())
    child = Child(part, Path("/nonexistent"))
    child.adopt(PartState(name=part.name, condition="running", process=process, hot_restart=name))
    child.ports.close()
    return child.hands_over
