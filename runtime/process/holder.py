"""Whether it is the replica that listens at its port: its command shows the port to everybody before it listens."""

import pwd
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from runtime.machine.listening import ListenerTable, ListeningSocket
from runtime.process.accounts import Owners
from runtime.process.ports import sockets_of
from runtime.process.record import ReplicaRecord

_ROOT = 0


@dataclass(frozen=True, slots=True)
class Holding:
    """Whether a replica listens at its port, None where the system does not say; `stranger`: the user in its place."""

    listens: bool | None
    stranger: str = ""


@dataclass(frozen=True, slots=True)
class PortHolders:
    """Compares the users of listening sockets with those of the replicas.

    nobody listens                                    -> not held
    root, or the user of the replica's process        -> by itself
    a process of the replica, as another user         -> by itself
    otherwise                                         -> by a stranger
    """

    owners: Owners
    _table: ListenerTable = field(default_factory=ListenerTable)

    def of(self, record: ReplicaRecord) -> Holding:
        """The holding of the port of a replica that runs."""
        listening = self._table.at(record.address, record.port)
        if listening is None or record.process is None:
            return Holding(None)
        own = record.uid if record.uid is not None else _uid_of(record.process.pid)
        strange = [listener for listener in listening if listener.uid not in (_ROOT, own)]
        if strange:
            family = frozenset(_sockets_of_family(record.process.pid))
            strange = [listener for listener in strange if listener.inode not in family]
        return Holding(bool(listening), self._named(strange[0]) if strange else "")

    def _named(self, listener: ListeningSocket) -> str:
        """Say which user it is: user 1879048193, of the deployment 'other'; user 33 (www-data)."""
        accounts = {number: name for name, number in self.owners.pool.known().items()}
        if deployment := accounts.get(listener.uid):
            return f"user {listener.uid}, of the deployment {deployment!r}"
        with suppress(KeyError):
            return f"user {listener.uid} ({pwd.getpwuid(listener.uid).pw_name})"
        return f"user {listener.uid}"


def _uid_of(pid: int) -> int | None:
    """The user of a replica that a version before has started."""
    with suppress(psutil.Error):
        return int(psutil.Process(pid).uids().real)
    return None


def _sockets_of_family(pid: int) -> Iterator[str]:
    """The process and all that descends from it may have become other users since it was started."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            yield from sockets_of(member.pid)
