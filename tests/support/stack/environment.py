"""What tests and the processes that they start see of the environment: the same on every machine.

Also what keeps them off somebody's real database: DATABASE_URL and REDIS_URL of the shell are gone.
"""

import os
import re
import signal
from pathlib import Path

import psutil
import pytest

from runtime.machine.path_access import closed_folder
from stack.home.folder import project_root
from tests.support.stack.ports import OF_REPLICAS

_KEPT = re.compile(
    r"""  PATH | HOME | TMPDIR | (DY)?LD_LIBRARY_PATH  # without these nothing starts
        | DOCKER_\w+                               # where a Docker engine is
        | (HYPOTHESIS | PYTEST | ROLLWAY_SOAK)_\w+ # said to the tests, not to Rollway
    """,
    re.VERBOSE,
)


ISOLATED = {"ROLLWAY_REPLICA_PORTS": OF_REPLICAS} | ({} if os.geteuid() else {"ROLLWAY_REPLICA_USER": "root"})
"""With this a stack of a test takes no accounts of this machine, except that of PostgreSQL, and no ports of others."""


needs_open_clone = pytest.mark.skipif(
    os.geteuid() == 0 and closed_folder(project_root()) is not None,
    reason="OTHER USERS MAY NOT ENTER WHERE THIS CLONE IS, AS BELOW /root, SO THIS IS NOT TESTED HERE",
)
"""Of tests in which another user runs what is in this clone."""


def empty_environment() -> None:
    """Forget every variable but those that a machine needs and those that are for the tests themselves."""
    for name in list(os.environ):
        if not _KEPT.fullmatch(name):
            del os.environ[name]
    os.environ.update(ISOLATED)


_MEMORY = Path("/dev/shm")
_ROOM = 8 << 30


def keep_files_in_memory() -> None:
    """Unless a folder is named, and where there is room: making files takes most of the time of a copied database."""
    if os.environ.keys() & {"TMPDIR", "PYTEST_DEBUG_TEMPROOT"} or not _MEMORY.is_dir():
        return
    disk = os.statvfs(_MEMORY)
    free = min(disk.f_bavail * disk.f_frsize, psutil.virtual_memory().available)
    if free >= _ROOM and not disk.f_flag & os.ST_NOEXEC and os.access(_MEMORY, os.W_OK):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(_MEMORY)


def hear_ctrl_c() -> None:
    """As in a terminal: a shell that runs the tests in the background has them, and all that they start, ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
