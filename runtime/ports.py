"""Free TCP ports for replicas."""

import random
import socket
from collections.abc import Callable

# Below the kernel's range for outgoing connections (32768-60999 on Linux), so that none of those takes a port between
# our test and the replica's listen().
REPLICA_PORTS = range(20000, 30000)


def free_port(ports: range, is_reserved: Callable[[int], bool]) -> int | None:
    """A port that nobody listens on and that `is_reserved` does not claim; None when all of `ports` are taken."""
    # A random start keeps two homes on one host apart, and a port that was just given up from being used again soon.
    start = random.randrange(len(ports))  # noqa: S311  # no secret
    candidates = (ports[(start + step) % len(ports)] for step in range(len(ports)))
    return next((port for port in candidates if not is_reserved(port) and _can_bind(port)), None)


def _can_bind(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))  # every interface: the replica may listen on all of them
        except OSError:
            return False
    return True
