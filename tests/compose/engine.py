"""The engine for the compose files: the one that answers here, or a dockerd in a network and processes of its own."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.support.docker.docker_engine import LOCAL_SOCKET, Dockerd, NoEngineError, answers, found
from tests.support.stack.waiting import eventually

_NEW_MOUNTS, _NEW_NETWORK = 0x00020000, 0x40000000  # of <linux/sched.h>; os.unshare came with Python 3.12
NEEDED = ("dockerd", "docker-init", "iptables", "ip", "unshare", "mount", "setpriv", "ldd")


class IsolatedDockerd(Dockerd):
    """Everything that it starts lives in its own pid namespace and ends with it, as at a power failure."""

    wrapper = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")

    def stop(self) -> None:
        """SIGTERM for dockerd itself, which ends its containers."""
        with suppress(psutil.NoSuchProcess):  # it did not come up, and why is for whoever started it to say
            for child in psutil.Process(self.pid).children():
                child.terminate()
        super().stop()

    def lose_power(self) -> None:
        """Nobody is asked; what a machine keeps in memory is gone, what is on its disk stays."""
        assert self._process, "it does not run"
        children = psutil.Process(self.pid).children()
        self._process.kill()
        self._process.wait()
        eventually(lambda: not any(map(_alive, children)), what="the end of its processes")
        (self.folder / "engine.pid").unlink()
        shutil.rmtree(self.folder / "exec", ignore_errors=True)


def given_engine() -> str | None:
    """The URL of an engine that answers here."""
    url = os.environ.get("DOCKER_HOST", LOCAL_SOCKET)
    return url if answers(url) else None


def check_own_engine() -> None:
    """Raises NoEngineError saying what an engine of our own lacks here."""
    if os.geteuid() != 0:
        raise NoEngineError("no Docker engine answers, and only root can start one")
    for program in NEEDED:
        found(program)


@contextmanager
def isolated_dockerd() -> Iterator[IsolatedDockerd]:
    """From here on, this process and what it starts are in a network of their own, which leads nowhere."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS | _NEW_NETWORK) != 0:
        raise NoEngineError(f"no network of its own: {os.strerror(ctypes.get_errno())}")
    for command in ("mount --make-rprivate /", "ip link set lo up"):
        subprocess.run(command.split(), check=True)
    folder = Path(tempfile.mkdtemp(prefix="rollway-docker-"))
    engine = IsolatedDockerd(folder)
    try:
        engine.start()
        yield engine
    finally:
        with suppress(AssertionError):  # that it does not run
            engine.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
