"""Ports for the servers of tests: none is given twice in a row, and none to two processes that run tests at once."""

import os
from itertools import cycle, islice
from random import randrange

from stack.home.settings import is_free

_PORTS = range(30_000, 32_760)
"""Above those that Rollway chooses from by itself, and below those of outgoing connections."""

_PROCESSES = 12
"""That run tests at once, at most."""


def _of_this_process() -> range:
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return _PORTS[number % _PROCESSES :: _PROCESSES]


_own = _of_this_process()
_next = islice(cycle(_own), randrange(len(_own)), None)  # another start in each run: those before may have left some


def free_port() -> int:
    """A port that nobody uses and that was given to nobody who may not have come to use it yet.

    One drawn from ten thousand is drawn twice: of five that are drawn before the first is used, once in a thousand
    times, and a run of all tests draws hundreds.
    """
    return next(port for port in islice(_next, len(_own)) if is_free(port))
