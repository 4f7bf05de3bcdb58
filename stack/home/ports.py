"""The ports of the stack's servers, all on 127.0.0.1, and its Unix sockets."""

import os
import socket
import sys
from collections.abc import Collection
from pathlib import Path

import runtime.machine.ports
from runtime.machine.ports import SERVER_PORTS
from stack.errors import StackError

HOST = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now; closed connections of one that just stopped do not count."""
    return runtime.machine.ports.is_free(port, HOST, reuse=True)


def free_port(reserved: Collection[int] = ()) -> int:
    """A port that nobody uses at the moment and that is not `reserved`. Raises StackError when there is none."""
    port = runtime.machine.ports.free_port(SERVER_PORTS, reserved.__contains__)
    if port is None:
        raise StackError(f"No port from {SERVER_PORTS.start} to {SERVER_PORTS.stop - 1} is free: stop what uses them.")
    return port


def asked_port(option: str, port: int, reserved: Collection[int]) -> int:
    """The port a person asked for by `option`. Raises StackError when it is taken, or asked for twice."""
    if port in reserved:
        raise StackError(f"Port {port} is asked for twice: choose another with {option}.")
    if not is_free(port):
        raise StackError(f"Port {port} on {HOST} is in use: choose another with {option}, or stop what uses it.")
    return port


def connected(path: Path, timeout: float) -> socket.socket:
    """A connection to the Unix socket there. Raises OSError.

    The name of one has 107 characters at most, and a home may lie deeper: so it is named from its folder.
    """
    connection = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        connection.settimeout(timeout)
        connection.connect(f"/proc/self/fd/{folder}/{path.name}" if sys.platform == "linux" else str(path))
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection
