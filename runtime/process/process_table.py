"""Replica processes in the operating system: found by their environment, signalled safely, reaped."""

import hashlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import UUID

import psutil

from runtime.machine.identity import HAS_PROC, Identity, IsOwner, identify, is_alive, is_unreaped, may_be_of

KEEPER = "ROLLWAY_KEEPER"
"""The variable by which a replica is found again: it names the home, and not where its records are."""
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
    """The value of KEEPER in the replicas of this home, which is absolute."""
    return hashlib.sha256(os.fsencode(home)).hexdigest()[:32]


def adopt_child(child: subprocess.Popen[bytes]) -> Identity:
    """Remember a child, so that it is reaped and its exit code known."""
    identity = identify(child.pid) or Identity(child.pid, 0.0, "")  # one that somebody else has reaped already
    with _children_guard:
        _children[os.getpid(), identity] = child
    return identity


def drop_children_except(remembered: Container[Identity | None]) -> None:
    """Reap our ended children, and forget those that no caller will ask for again."""
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
    """Replicas of this home among the running processes that `may_be` one, by route id, except for `known_pids`.

    Others' processes are never taken for replicas, whatever they carry: anybody can write an environment.
    Looks only into session leaders (a replica is one), which are few; of several with one route id the oldest wins.
    """
    by_route: dict[UUID, Sighting] = {}
    for pid in psutil.pids():
        if pid in known_pids or session_of(pid) != pid or not _may_be_of(pid, home):
            continue
        sighting = _sighting(pid, home, may_be)
        if sighting is None:
            continue
        earlier = by_route.get(sighting.route_id)
        if earlier is None or sighting.identity.started < earlier.identity.started:
            by_route[sighting.route_id] = sighting
    return by_route


def _may_be_of(pid: int, home: Path) -> bool:
    """Whether it can be of this home, by one read of /proc: a quarter of the price of psutil."""
    try:
        carried = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return True
    return keeper_of(home).encode() in carried or os.fsencode(home) in carried


def _is_kept_by(home: Path, env: Mapping[str, str]) -> bool:
    """Whether a replica of that environment is of this home. Those of 0.1 have the folder itself."""
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


_KILL_ROUNDS = 3
_LISTENS = psutil.CONN_LISTEN


def group_is_alive(identity: Identity) -> bool:
    """Whether any process of the group that this session leader began still runs, though itself may have ended."""
    try:
        os.killpg(identity.pid, 0)
    except OSError:
        return False
    return _number_is_ours(identity) and any(
        _group(pid) == identity.pid and not _is_zombie(pid) for pid in psutil.pids()
    )


def kill_group(identity: Identity | None) -> None:
    """Send SIGKILL to the rest of the process group that this process began, though itself may have ended."""
    if identity is not None and group_is_alive(identity):
        with suppress(OSError):
            os.killpg(identity.pid, signal.SIGKILL)


def kill_family(route_id: UUID, identity: Identity, is_owner: IsOwner) -> None:
    """Send SIGKILL to the replica and to what it left: its session, its children, and the processes with its route id.

    A process that has left the session, and whose parent is gone, still carries it, unless it was started without.
    `is_owner`: whose processes may be of its deployment; others are left alone, whatever they carry.
    """
    for _ in range(_KILL_ROUNDS):  # a second round for those forked during the first
        members = _family(str(route_id), identity, is_owner)
        if not members:
            return
        _kill(members)


def left_of(route_id: UUID, identity: Identity, is_owner: IsOwner) -> list[psutil.Process]:
    """The leftovers of an ended replica, in the order of their numbers."""
    return sorted(_family(str(route_id), identity, is_owner), key=lambda process: process.pid)


def listening_of(handle: str) -> tuple[str, ...]:
    """The addresses where a replica of this handle (`pid:71`) and its children listen, as host:port, in order."""
    places: set[str] = set()
    with suppress(psutil.Error, ValueError):
        process = psutil.Process(int(handle.removeprefix("pid:")))
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                places |= {_place(each.laddr) for each in member.net_connections("tcp") if each.status == _LISTENS}
    return tuple(sorted(places))


def _place(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _family(route_id: str, identity: Identity, is_owner: IsOwner) -> set[psutil.Process]:
    members: set[psutil.Process] = set()
    if is_alive(identity):
        with suppress(psutil.Error):
            members.update(psutil.Process(identity.pid).children(recursive=True))
    session_is_ours = _number_is_ours(identity)
    strange = {None, 0, os.getsid(0)}  # of what is gone, of the kernel, and our own
    owner = cache(is_owner)
    for pid in psutil.pids():
        session = session_of(pid)
        ours = session_is_ours and session == identity.pid  # as any user by now: a replica may give up rights
        if session in strange or not (ours or (may_be_of(pid, owner) and _may_carry(pid, route_id))):
            continue
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.status() != psutil.STATUS_ZOMBIE and (ours or _is_left_of(route_id, process, is_owner)):
                members.add(process)
    return members


def _number_is_ours(identity: Identity) -> bool:
    """Whether a session or group of this number, if there is one, is the one that this process began.

    The system gives the number to no other process as long as somebody is in the session or the group.
    """
    return is_unreaped(identity) or not psutil.pid_exists(identity.pid)


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _is_zombie(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True  # it is gone meanwhile


def _may_carry(pid: int, route_id: str) -> bool:
    """Whether its environment can say so, by one read of /proc: a quarter of the price of asking psutil."""
    try:
        return route_id.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return not HAS_PROC


def _is_left_of(route_id: str, process: psutil.Process, is_owner: IsOwner) -> bool:
    return process.environ().get("ROLLWAY_ROUTE") == route_id and is_owner(process.uids().real)


def kill_account(number: int) -> None:
    """Send SIGKILL to everything that runs under this user number."""
    for _ in range(_KILL_ROUNDS):
        members = [process for pid in psutil.pids() if (process := _run_by(pid, number))]
        if not members:
            return
        _kill(members)


def _run_by(pid: int, number: int) -> psutil.Process | None:
    if not may_be_of(pid, number.__eq__):
        return None
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return process if number in process.uids() else None
    return None


def _kill(members: Iterable[psutil.Process]) -> None:
    for process in members:
        with suppress(psutil.Error):
            process.kill()
