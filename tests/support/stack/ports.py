"""Ports for the servers of tests: none is given twice in a row, and none to two processes that run tests at once."""

import atexit
import socket
from itertools import cycle, islice
from random import randrange

from domain.installation.settings import REPLICA_PORTS
from stack.home.server_settings import HOST, is_free

_SHARES = range(30_000, 30_024)
"""A process that runs tests, of this run or of another on the machine, holds one, and has that share of the ports."""

_PORTS = range(_SHARES.stop, 32_760)
"""Above those that Rollway chooses from by itself, and below those of outgoing connections."""


def _number_of_this_process() -> int:
    for number, port in enumerate(_SHARES):
        lock = socket.socket()
        try:
            lock.bind((HOST, port))
        except OSError:
            lock.close()
        else:
            atexit.register(lock.close)
            return number
    raise RuntimeError(f"{len(_SHARES)} processes run tests here: no port is left for this one")


_number = _number_of_this_process()
_own = _PORTS[_number :: len(_SHARES)]
_next = islice(cycle(_own), randrange(len(_own)), None)  # another start in each run: those before may have left some

_replicas_of_each = len(REPLICA_PORTS) // len(_SHARES)
_first = REPLICA_PORTS[_number * _replicas_of_each]
OF_REPLICAS = f"{_first}-{_first + _replicas_of_each - 1}"
"""The share of this process of the ports of replicas: two stacks of a user may choose one port at once."""


def free_port() -> int:
    """A port that nobody uses and that was given to nobody who may not have come to use it yet.

    One drawn from ten thousand is drawn twice: of five that are drawn before the first is used, once in a thousand
    times, and a run of all tests draws hundreds.
    """
    return next(port for port in islice(_next, len(_own)) if is_free(port))
