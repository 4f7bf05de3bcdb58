"""The replicas of this machine, as far as stopping the stack goes: counted, drained, ended within their grace."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stack.home.folder import Home
from stack.home.state import read_state
from stack.supervisor.drain import drain_proxy

if TYPE_CHECKING:
    from runtime.docker.runtime import DockerRuntime

LONGEST_GRACE = 60.0
_CONTAINER_GRACE = 10.0


def running_replicas(home: Path) -> int:
    """How many replicas run here, processes and containers."""
    from runtime.process.runtime import ProcessRuntime  # noqa: PLC0415 -- only `down` needs them, and `up` shall start fast

    count = 0
    if home.is_dir():
        count += sum(replica.running for replica in ProcessRuntime(home).everyone())
    with suppress(OSError):  # on most hosts there is no engine, and so there are no containers
        count += sum(replica.running for replica in _containers(home).everyone())
    return count


def stop_replicas(home: Path, say: Callable[[str], None] = lambda _: None) -> None:
    """Let no new request in, let those in flight end, then end every process and container that Rollway started here.

    A process gets the grace of its revision, at most 60 s; `say` hears how many are left.
    """
    from runtime.process.ending import end_everyone  # noqa: PLC0415
    from runtime.process.record import RecordFolder  # noqa: PLC0415
    from runtime.process.runtime import stop_all  # noqa: PLC0415

    count = running_replicas(home)
    if count:
        drain_proxy(Home(home), say)
        say(f"stopping {count} replicas")

    def left(number: int) -> None:
        say(f"{number} replicas left" if number else "all replicas have ended")

    stop_all(home, min(RecordFolder(home).longest_grace(), LONGEST_GRACE), left)
    with suppress(OSError):
        end_everyone(_containers(home), _CONTAINER_GRACE, left)


def _containers(home: Path) -> "DockerRuntime":
    from runtime.docker.container import owner_of  # noqa: PLC0415
    from runtime.docker.runtime import DockerRuntime  # noqa: PLC0415

    return DockerRuntime(owner_of(host_of(home), home))


def host_of(home: Path) -> str:
    """The name that the workers of this stack go by."""
    state = read_state(Home(home))
    told = state.environment.get("ROLLWAY_HOST") if state else None
    return told or os.environ.get("ROLLWAY_HOST") or socket.gethostname()
