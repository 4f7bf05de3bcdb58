"""Free TCP ports on this machine."""

import socket

from stack.errors import StackError

HOST = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` of 127.0.0.1 now."""
    with socket.socket() as probe:
        # without it the closed connections of a server that just stopped would count as its port being taken
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def asked_port(option: str, port: int) -> int:
    """The port a person asked for by `option`. Raises StackError when it is taken."""
    if not is_free(port):
        raise StackError(f"Port {port} on {HOST} is in use: choose another with {option}, or stop what uses it.")
    return port
