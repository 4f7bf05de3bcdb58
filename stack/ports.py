"""The ports of the stack's servers, all on 127.0.0.1."""

import runtime.ports
from runtime.ports import SERVER_PORTS
from stack.errors import StackError

HOST = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now; closed connections of one that just stopped do not count."""
    return runtime.ports.is_free(port, HOST, reuse=True)


def free_port() -> int:
    """A port that nobody uses at the moment. Raises StackError when there is none."""
    port = runtime.ports.free_port(SERVER_PORTS)
    if port is None:
        raise StackError(f"No port from {SERVER_PORTS.start} to {SERVER_PORTS.stop - 1} is free: stop what uses them.")
    return port


def asked_port(option: str, port: int) -> int:
    """The port a person asked for by `option`. Raises StackError when it is taken."""
    if not is_free(port):
        raise StackError(f"Port {port} on {HOST} is in use: choose another with {option}, or stop what uses it.")
    return port
