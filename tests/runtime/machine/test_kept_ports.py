"""Sockets that are kept for a process: handed to it, and shared with nobody else's user."""

import os
import socket
import subprocess
import sys

import pytest

from runtime.machine.free_ports import SOCKET, handed_socket, joined
from stack.home.folder import project_root
from tests.support.stack.ports import free_port

HANDED_AT_3 = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update({"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid() + int(sys.argv[2]))})
os.execv(sys.executable, [sys.executable, "-c", sys.argv[3]])
"""
SAYS_ITS_PORT = """
import os
from runtime.machine.free_ports import handed_socket
kept = handed_socket(os.environ)
print(kept.getsockname()[1] if kept else None)
"""


def port_by_systemd(listening: socket.socket, *, of_another: bool) -> str:
    words = [sys.executable, "-c", HANDED_AT_3, str(listening.fileno()), str(int(of_another)), SAYS_ITS_PORT]
    return subprocess.check_output(words, cwd=project_root(), pass_fds=(listening.fileno(),), text=True).strip()


def test_a_process_serves_at_the_socket_of_systemd_if_it_is_meant() -> None:
    with joined(("127.0.0.1", free_port())) as listening:
        assert port_by_systemd(listening, of_another=False) == str(listening.getsockname()[1])
        assert port_by_systemd(listening, of_another=True) == "None"


def test_a_process_serves_at_the_socket_of_its_supervisor_and_hands_it_to_no_child() -> None:
    assert handed_socket({}) is None
    with joined(("127.0.0.1", free_port())) as listening:
        handed = handed_socket({SOCKET: str(os.dup(listening.fileno()))})
        assert handed is not None
        with handed:
            assert handed.getsockname() == listening.getsockname()
            assert not handed.get_inheritable()


def test_two_of_one_user_keep_a_port_together() -> None:
    with joined(("127.0.0.1", free_port())) as first, joined(first.getsockname()) as second, socket.socket() as other:
        assert first.getsockname() == second.getsockname()
        with pytest.raises(OSError, match="in use"):
            other.bind(first.getsockname())


def test_connections_that_were_just_closed_keep_nobody_from_a_port() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as old, socket.create_connection(("127.0.0.1", port)) as caller:
        answered, _ = old.accept()
        answered.close()  # this side closes first, and remembers the connection for a minute
        assert caller.recv(1) == b""
    joined(("127.0.0.1", port)).close()


@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE")
def test_another_user_gets_no_port_that_is_kept_and_stops_nobody_who_shares_it() -> None:
    port = free_port()
    binds = (
        "import os, socket; os.setuid(61_234)\n"  # by itself: others may not enter where its Python is
        "s = socket.socket(); s.setsockopt(1, 2, 1); s.setsockopt(1, 15, 1)\n"
        f"try: s.bind(('127.0.0.1', {port})); print('bound')\nexcept OSError: print('refused')"
    )
    with joined(("127.0.0.1", port)), joined(("127.0.0.1", port)) as sharing:
        assert subprocess.check_output([sys.executable, "-c", binds]).strip() == b"refused"
        sharing.listen()
