"""Free TCP ports of this machine, for replicas and for servers."""

import os
import random
import socket
from collections.abc import Callable, Mapping

# Below the kernel's range for outgoing connections (32768-60999 on Linux), so that none of those takes a port between
# our test and the listen() of the process that gets it.
SERVER_PORTS = range(10000, 20000)
SOCKET = "ROLLWAY_SOCKET"
"""The descriptor of the listening socket that the supervisor of a stack keeps for a process."""
_FIRST_OF_SYSTEMD = 3
Address = tuple[str, int]


def free_port(ports: range, is_reserved: Callable[[int], bool] = lambda _: False) -> int | None:
    """A port that nobody listens on and that `is_reserved` does not claim; None when all of `ports` are taken."""
    # A random start keeps two homes on one host apart, and a port that was just given up from being used again soon.
    start = random.randrange(len(ports))  # noqa: S311  # no secret
    candidates = (ports[(start + step) % len(ports)] for step in range(len(ports)))
    return next((port for port in candidates if not is_reserved(port) and is_free(port)), None)


def is_free(port: int, host: str = "", *, reuse: bool = False) -> bool:
    """Whether a server could listen on `port` of `host`, by default of every interface, now.

    `reuse`: the server sets SO_REUSEADDR, so that closed connections of the one before it do not count.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def claim(port: int, host: str) -> socket.socket | None:
    """A socket that keeps `port` of `host` for a server that shares it (SO_REUSEPORT); None where it is taken.

    Two such servers, of strangers too, would share the port, and its callers, without an error. Nobody connects to the
    socket, as it does not listen. While it is open, `is_free` is false for others, and their claim is refused.
    """
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError:
        listener.close()
        return None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return listener


def joined(address: Address) -> socket.socket:
    """A socket that keeps this address next to those of our own user that share it. Raises OSError.

    As long as one of them is open, no other user can have the port. SO_REUSEADDR, for connections that have just been
    closed, would let others in if it stayed. :: is for IPv4 as well.
    """
    host, port = address
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if listener.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except OSError:
        listener.close()
        raise
    return listener


def handed_socket(environ: Mapping[str, str]) -> socket.socket | None:
    """The listening socket that the supervisor of a stack, or systemd, keeps for this process.

    None where it has to listen by itself. The socket stays open when this process ends, so nobody else gets the port.
    """
    descriptor = environ.get(SOCKET)
    if descriptor is None and environ.get("LISTEN_PID") == str(os.getpid()) and environ.get("LISTEN_FDS") == "1":
        descriptor = str(_FIRST_OF_SYSTEMD)
    if descriptor is None:
        return None
    handed = socket.socket(fileno=int(descriptor))
    handed.set_inheritable(False)
    return handed


def listens_at(path: str) -> bool:
    """Whether a server accepts connections at this Unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.settimeout(1)
            probe.connect(path)
        except OSError:
            return False
    return True
