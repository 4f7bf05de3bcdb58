"""Gives replicas their ports; a replica that holds ports of others is ended, with a word in the log."""

import os
import pwd
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from uuid import UUID

import psutil
import structlog

from runtime.machine.free_ports import free_port
from runtime.machine.identity import Identity, may_be_of
from runtime.machine.listening import ListenerTable, ListeningSocket
from runtime.process.accounts import Owners
from runtime.process.record import ReplicaRecord
from runtime.protocol import ReplicaStartError

MOST_PORTS = 256
"""The most ports of the range that one process may hold while others find none."""
_END_SECONDS = 2.0
_log = structlog.get_logger(__name__)
_TCP, _OTHERS = ("tcp", "tcp6"), ("unix", "udp", "udp6", "raw", "raw6", "netlink", "packet", "icmp", "icmp6")
_INODE = {"unix": 6, "netlink": 9, "packet": 8}
_INODE_OF_IP = 9


@dataclass(frozen=True, slots=True)
class Hoard:
    """A process of a deployment that holds more ports than it may."""

    deployment: str
    pid: int
    ports: int


def given_port(ports: range, is_reserved: Callable[[int], bool], accounts: Mapping[str, int]) -> int:
    """A free port, even if a program tries to hold them all. Raises ReplicaStartError.

    `accounts`: those of the deployments of this home, whose processes are ended that hold more than MOST_PORTS, once
    there is no port for others. Processes of anybody else are not ours to end.
    """
    port = free_port(ports, is_reserved)
    if port is None and (hoards := _end_hoards(ports, accounts)):
        for hoard in hoards:
            _log.warning("ended: it held ports that others need", **asdict(hoard))
        port = free_port(ports, is_reserved)
    if port is None:
        users = ", ".join(f"{count} of user {user}" for user, count in _users(ports).items())
        raise ReplicaStartError(f"no port from {ports.start} to {ports.stop - 1} is free on this host: {users}")
    return port


def _end_hoards(ports: range, accounts: Mapping[str, int]) -> list[Hoard]:
    hoards = list(_hoards(ports, {number: name for name, number in accounts.items()}))
    killed = []
    for hoard in hoards:
        with suppress(psutil.Error):
            process = psutil.Process(hoard.pid)
            process.kill()
            killed.append(process)
    psutil.wait_procs(killed, timeout=_END_SECONDS)
    return hoards


def _users(ports: range) -> Mapping[int, int]:
    """The number of these ports that each user has, by its number, most first."""
    users = {port: int(row[7]) for name in _TCP for row in _rows(name) if (port := _port(row)) in ports}
    return dict(Counter(users.values()).most_common())


def _hoards(ports: range, deployments: Mapping[int, str]) -> Iterator[Hoard]:
    """A socket that is bound but does not listen yet holds its port, and is in no table: it is counted too."""
    port_of = {row[_INODE_OF_IP]: _port(row) for name in _TCP for row in _rows(name)}
    others = {row[_INODE.get(name, _INODE_OF_IP)] for name in _OTHERS for row in _rows(name)}
    for pid in psutil.pids():
        deployment = _deployment_of(pid, deployments)
        if deployment is None:
            continue
        sockets = [inode for inode in sockets_of(pid) if inode not in others]
        listening = {port_of[inode] for inode in sockets if inode in port_of}
        count = len(listening & {*ports}) + sum(inode not in port_of for inode in sockets)
        if count > MOST_PORTS:
            yield Hoard(deployment, pid, count)


def _deployment_of(pid: int, deployments: Mapping[int, str]) -> str | None:
    if not may_be_of(pid, deployments.__contains__):
        return None
    with suppress(psutil.Error):
        return deployments.get(psutil.Process(pid).uids().real)
    return None


def sockets_of(pid: int) -> Iterator[str]:
    """The numbers of the sockets that a process has open."""
    folder = Path(f"/proc/{pid}/fd")
    with suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208  # there may be many
            with suppress(OSError):
                target = os.readlink(folder / name)  # noqa: PTH115
                if target.startswith("socket:["):
                    yield target.removeprefix("socket:[").removesuffix("]")


def _rows(table: str) -> Iterator[list[str]]:
    with suppress(OSError):
        yield from (
            row
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
            if len(row := line.split()) > _INODE.get(table, _INODE_OF_IP)
        )


def _port(row: list[str]) -> int:
    """0: 0100007F:1F90 00000000:0000 0A ..."""
    return int(row[1].rpartition(":")[2], 16)


_ROOT = 0


@dataclass(frozen=True, slots=True)
class Holding:
    """Whether a replica listens at its port, None where the system does not say; `stranger`: the user in its place."""

    listens: bool | None
    stranger: str = ""


@dataclass(frozen=True, slots=True)
class PortHolders:
    """Compares the listening sockets at the ports of replicas with the replicas.

    nobody listens                                         -> not held
    a process of the replica, as whatever user             -> by itself
    a process that was started for another replica         -> by a stranger
    root, or the user of the replica's process             -> by itself
    otherwise                                              -> by a stranger
    """

    owners: Owners
    _table: ListenerTable = field(default_factory=ListenerTable)

    def of(self, record: ReplicaRecord) -> Holding:
        """The holding of the port of a replica, which may have ended."""
        listening = self._table.at(record.address, record.port)
        if listening is None or record.process is None:
            return Holding(None)
        own = record.uid if record.uid is not None else _uid_of(record.process.pid)
        strange = _first_stranger(record.process, record.route_id, own, tuple(listening))
        return Holding(bool(listening), self._describe(*strange) if strange else "")

    def _describe(self, listener: ListeningSocket, other: str) -> str:
        """The stranger in words, as the rest of "port 25772 is held by".

        another replica, of the deployment 'web'
        user 1879048193, of the deployment 'other'
        user 33 (www-data)
        """
        if other:
            return f"another replica, of the deployment {other!r}"
        accounts = {number: name for name, number in self.owners.pool.accounts().items()}
        if deployment := accounts.get(listener.uid):
            return f"user {listener.uid}, of the deployment {deployment!r}"
        with suppress(KeyError):
            return f"user {listener.uid} ({pwd.getpwuid(listener.uid).pw_name})"
        return f"user {listener.uid}"


@lru_cache(maxsize=4096)
def _first_stranger(
    process: Identity, route_id: UUID, own: int | None, listening: tuple[ListeningSocket, ...]
) -> tuple[ListeningSocket, str] | None:
    """The first socket of a stranger, and the deployment of its replica, empty where it is none.

    Whose a socket is does not change while it listens, so each is looked up once.
    """
    family = frozenset(_sockets_of_family(process.pid, {listener.inode for listener in listening}))
    for listener in listening:
        if listener.inode in family:
            continue
        if listener.uid not in (_ROOT, own):
            return listener, ""
        others = dict(_replicas_with(listener))
        if others and str(route_id) not in others:
            return listener, next(iter(others.values()))
    return None


def _replicas_with(listener: ListeningSocket) -> Iterator[tuple[str, str]]:
    """The route and the deployment of each replica a process of which has this socket."""
    for pid in psutil.pids():
        if may_be_of(pid, listener.uid.__eq__) and listener.inode in sockets_of(pid):
            with suppress(psutil.Error, KeyError):
                carried = psutil.Process(pid).environ()
                yield carried["ROLLWAY_ROUTE"], carried["ROLLWAY_DEPLOYMENT"]


def _uid_of(pid: int) -> int | None:
    """The user of a replica that an earlier version has started."""
    with suppress(psutil.Error):
        return int(psutil.Process(pid).uids().real)
    return None


def _sockets_of_family(pid: int, among: Collection[str]) -> Iterator[str]:
    """The sockets `among` these of a replica and its descendants, which may have become other users since its start."""
    own = frozenset(sockets_of(pid)).intersection(among)
    yield from own
    if len(own) == len(among):
        return
    with suppress(psutil.Error):
        for member in psutil.Process(pid).children(recursive=True):
            yield from sockets_of(member.pid)
