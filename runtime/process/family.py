"""What a replica has started: asked whether it still runs, and ended with it."""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from uuid import UUID

import psutil

from runtime.machine.identity import Identity, is_alive, is_unreaped
from runtime.machine.owned import HAS_PROC, IsOwner, may_be_of
from runtime.process.table import session_of

_KILL_ROUNDS = 3
_LISTENS = psutil.CONN_LISTEN


def group_is_alive(identity: Identity) -> bool:
    """Whether anybody of the process group that this session leader began still runs, though itself may have ended."""
    try:
        os.killpg(identity.pid, 0)
    except OSError:
        return False
    return _number_is_ours(identity) and any(
        _group(pid) == identity.pid and not _is_zombie(pid) for pid in psutil.pids()
    )


def kill_group(identity: Identity | None) -> None:
    """Send SIGKILL to whoever is left of the process group that this process began, though itself may have ended."""
    if identity is not None and group_is_alive(identity):
        with suppress(OSError):
            os.killpg(identity.pid, signal.SIGKILL)


def kill_family(route_id: UUID, identity: Identity, is_owner: IsOwner) -> None:
    """Send SIGKILL to the replica and to what it left: its session, its children, and who carries its route id.

    A process that has left the session, and whose parent is gone, still carries it, unless it was started without.
    `is_owner`: whose processes may be of its deployment; others are left alone, whatever they carry.
    """
    for _ in range(_KILL_ROUNDS):  # a second round for those forked during the first
        members = _family(str(route_id), identity, is_owner)
        if not members:
            return
        _kill(members)


def left_of(route_id: UUID, identity: Identity, is_owner: IsOwner) -> list[psutil.Process]:
    """What a replica has left that has ended itself, in the order of its numbers."""
    return sorted(_family(str(route_id), identity, is_owner), key=lambda process: process.pid)


def listening_of(handle: str) -> tuple[str, ...]:
    """Return where a replica of this handle (`pid:71`) and its children listen, as host:port, in order."""
    found: set[str] = set()
    with suppress(psutil.Error, ValueError):
        process = psutil.Process(int(handle.removeprefix("pid:")))
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                found |= {_place(each.laddr) for each in member.net_connections("tcp") if each.status == _LISTENS}
    return tuple(sorted(found))


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
        ours = session_is_ours and session == identity.pid  # whoever it runs as by now: a replica may give up rights
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
    """Send SIGKILL to everything that runs as the user of this number."""
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
