"""Who listens at a port, by what the kernel says in either way."""

import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from runtime.machine import listening
from runtime.machine.listening import ListenerTable
from tests.support.stack.ports import free_port
from tests.support.stack.waiting import eventually

PLACES = [
    (socket.AF_INET, "127.0.0.1", {"127.0.0.1"}),
    (socket.AF_INET, "0.0.0.0", {"127.0.0.1", "127.0.0.2"}),
    (socket.AF_INET6, "::", {"127.0.0.1", "127.0.0.2", "::1"}),
    (socket.AF_INET6, "::1", {"::1"}),
    (socket.AF_INET6, "::ffff:127.0.0.2", {"127.0.0.2"}),
]
LISTENS = """
import socket, sys, time
taken = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", flush=True)
time.sleep(600)
"""


@pytest.fixture
def left() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listen(left: ExitStack, family: int, host: str) -> socket.socket:
    made = left.enter_context(socket.socket(family))
    made.bind((host, free_port()))
    made.listen()
    return made


@pytest.mark.skipif(sys.platform != "linux", reason="ONLY LINUX TELLS WHO LISTENS, SO THIS IS NOT TESTED HERE")
@pytest.mark.parametrize(("family", "host", "answered"), PLACES)
def test_who_listens_gets_the_connections_to_these_hosts(
    left: ExitStack, family: int, host: str, answered: set[str]
) -> None:
    made = listen(left, family, host)
    port = made.getsockname()[1]
    assert {name for name in ("127.0.0.1", "127.0.0.2", "::1") if ListenerTable().at(name, port)} == answered
    (by_name,) = ListenerTable().at("rack-7.example.com", port) or ()
    assert (by_name.uid, by_name.inode) == (os.geteuid(), str(os.fstat(made.fileno()).st_ino))


@pytest.mark.skipif(sys.platform != "linux", reason="ONLY LINUX TELLS WHO LISTENS, SO THIS IS NOT TESTED HERE")
def test_both_ways_to_ask_say_the_same(left: ExitStack) -> None:
    ports = {listen(left, family, host).getsockname()[1] for family, host, _ in PLACES}
    for peer in ports:  # connections are told of by nobody
        left.enter_context(socket.socket(socket.AF_INET6)).connect_ex(("::ffff:127.0.0.1", peer))
    asked, read = (
        Counter(found for found in look() if found.port in ports) for look in (listening._query, listening._scan)
    )
    assert asked == read
    assert asked.total() == len(PLACES)


def test_who_begins_to_listen_is_seen_soon_and_who_ends_too(left: ExitStack) -> None:
    table, made = ListenerTable(), left.enter_context(socket.socket())
    made.bind(("127.0.0.1", free_port()))
    address = made.getsockname()
    if table.at(*address) is None:
        pytest.skip("this system does not say who listens")
    assert table.at(*address) == []
    made.listen()
    eventually(lambda: table.at(*address), within=5)
    made.close()
    eventually(lambda: not table.at(*address), within=5)


@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE")
def test_each_is_told_with_its_user() -> None:
    port = free_port()
    command = ("python3", "-c", LISTENS, str(port))  # the one of the system: others may not enter where ours is
    with subprocess.Popen(command, user=61_234, stdout=subprocess.PIPE, cwd="/") as process:
        assert process.stdout
        assert process.stdout.readline() == b"listens\n"
        (made,) = ListenerTable().at("127.0.0.1", port) or ()
        process.kill()
    assert made.uid == 61_234
