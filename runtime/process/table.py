"""Replica processes in the operating system: found by their environment, signalled safely, reaped."""

import hashlib
import os
import subprocess
import threading
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import UUID

import psutil

from runtime.machine.identity import Identity, identify, is_unreaped

KEEPER = "ROLLWAY_KEEPER"
"""By this variable a replica is found again: it says whose it is, and not where that one's records are."""
_LAST_THREAD_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Sighting:
    """A session leader that carries a route id in its environment, and the port that it was given."""

    route_id: UUID
    identity: Identity
    port: int
    uid: int
    env: dict[str, str]


# Children of this very process, by our own pid: a fork inherits the dict but not the children.
_children: dict[tuple[int, Identity], subprocess.Popen[bytes]] = {}
_children_guard = threading.Lock()


@cache
def keeper_of(home: Path) -> str:
    """Return what KEEPER says in the replicas of this home, which is absolute."""
    return hashlib.sha256(os.fsencode(home)).hexdigest()[:32]


def adopt_child(child: subprocess.Popen[bytes]) -> Identity:
    """Remember a child, so that it is reaped and its exit code known."""
    identity = identify(child.pid) or Identity(child.pid, 0.0, "")  # one that somebody else has reaped already
    with _children_guard:
        _children[os.getpid(), identity] = child
    return identity


def drop_children_except(remembered: Container[Identity | None]) -> None:
    """Reap our ended children, and forget those that nobody will ask for again."""
    with _children_guard:
        ours = [key for key in _children if key[0] == os.getpid()]
        for key in ours:
            if _children[key].poll() is not None and key[1] not in remembered:
                del _children[key]


def exit_code(identity: Identity) -> int | None:
    """The exit code of an ended process, while it can be known: of our own child, or of a zombie nobody reaped yet.

    Negative for a signal, as in `subprocess`. Of others' zombies it is known on Linux only.
    """
    with _children_guard:
        child = _children.get((os.getpid(), identity))
        if child:
            # its first thread is seen dead a moment before the last one is, and only then is there a code
            with suppress(subprocess.TimeoutExpired):
                return child.wait(timeout=_LAST_THREAD_SECONDS)
            return None
    if not is_unreaped(identity):
        return None
    try:
        state, *_, status = Path(f"/proc/{identity.pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return os.waitstatus_to_exitcode(int(status)) if state == "Z" else None


MayBe = Callable[[int, str], bool]
"""Whether a process of the user of that number may be a replica of the deployment of that name."""


def sightings(home: Path, may_be: MayBe, known_pids: Container[int] = ()) -> dict[UUID, Sighting]:
    """Replicas of this home among the running processes that `may_be` one, by route id, but for `known_pids`.

    Others' processes are never taken for replicas, whatever they carry: anybody can write an environment.
    Looks only into session leaders (a replica is one), which are few; of several with one route id the oldest wins.
    """
    found: dict[UUID, Sighting] = {}
    for pid in psutil.pids():
        if pid in known_pids or session_of(pid) != pid or not _may_be_of(pid, home):
            continue
        sighting = _sighting(pid, home, may_be)
        if sighting is None:
            continue
        earlier = found.get(sighting.route_id)
        if earlier is None or sighting.identity.started < earlier.identity.started:
            found[sighting.route_id] = sighting
    return found


def _may_be_of(pid: int, home: Path) -> bool:
    """Whether it can be of this home, by one read of /proc: a quarter of the price of asking psutil."""
    try:
        carried = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return True
    return keeper_of(home).encode() in carried or os.fsencode(home) in carried


def _is_kept_by(home: Path, env: Mapping[str, str]) -> bool:
    """Whether a replica of that environment is of this home. Those of 0.1 were told the folder itself."""
    if KEEPER in env:
        return env[KEEPER] == keeper_of(home)
    return env.get("ROLLWAY_HOME") == str(home)


def session_of(pid: int) -> int | None:
    """The session of this process; None when it is gone."""
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _sighting(pid: int, home: Path, may_be: MayBe) -> Sighting | None:
    try:
        process = psutil.Process(pid)
        identity, env = identify(pid), process.environ()
        if identity is None or not _is_kept_by(home, env):
            return None
        uid = process.uids().real
        if not may_be(uid, env.get("ROLLWAY_DEPLOYMENT", "")):
            return None
        return Sighting(UUID(env["ROLLWAY_ROUTE"]), identity, int(env["PORT"]), uid, env)
    except (psutil.Error, OSError, KeyError, ValueError):
        return None
