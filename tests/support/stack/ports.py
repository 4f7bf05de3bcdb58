"""Ports for the servers of tests: none is given twice in a row, and none to two processes that run tests at once."""

import atexit
import socket
from itertools import cycle, islice
from random import randrange

from stack.home.server_settings import HOST, is_free

_SHARES = range(30_000, 30_024)
"""A process that runs tests, of this run or of another on the machine, holds one, and has that share of the ports."""

_PORTS = range(_SHARES.stop, 32_760)
"""Above those that Rollway chooses from by itself, and below those of outgoing connections."""


def _of_this_process() -> range:
    for number, port in enumerate(_SHARES):
        lock = socket.socket()
        try:
            lock.bind((HOST, port))
        except OSError:
            lock.close()
        else:
            atexit.register(lock.close)
            return _PORTS[number :: len(_SHARES)]
    raise RuntimeError(f"{len(_SHARES)} processes run tests here: no port is left for this one")


_own = _of_this_process()
_next = islice(cycle(_own), randrange(len(_own)), None)  # another start in each run: those before may have left some


def free_port() -> int:
    """A port that nobody uses and that was given to nobody who may not have come to use it yet.

    One drawn from ten thousand is drawn twice: of five that are drawn before the first is used, once in a thousand
    times, and a run of all tests draws hundreds.
    """
    return next(port for port in islice(_next, len(_own)) if is_free(port))
