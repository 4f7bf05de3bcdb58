"""Replicas as operating-system processes of this host, which outlive the worker that started them."""

import os
import signal
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import UUID

import psutil
import structlog

from domain.installation.settings import REPLICA_PORTS
from runtime.machine.identity import IsOwner, identify, is_alive, send_to_group, wait_for_end
from runtime.process.account_pool import AccountPool
from runtime.process.accounts import Accounts, Owners, account_of
from runtime.process.begin.environment import Surroundings
from runtime.process.begin.limits import ProcessLimits
from runtime.process.begin.spawn import BEGIN_SECONDS, Confines, HeldProcess, access_of, hold
from runtime.process.port_allocation import PortHolders, given_port
from runtime.process.process_logs import ProcessLogs, end_keeper, keep_again, kept_log
from runtime.process.process_table import adopt_child, drop_children_except, kill_family, kill_group, left_of, sightings
from runtime.process.record import LOOPBACK, RecordFolder, ReplicaRecord, pids_of
from runtime.protocol import Replica, ReplicaRequest, ReplicaStartError

_log = structlog.get_logger(__name__)
_LOG_PATIENCE_SECONDS = 1.0
_LOG_LINES = 20
_BEGIN_PATIENCE_SECONDS = 2 * BEGIN_SECONDS
_LOOK_AGAIN_SECONDS = 0.01


class ProcessRuntime:
    """The Runtime for `runtime: process`. All workers of a host share one `home`; a replica is known by its route id.

    Replicas are told to listen on `address`, where proxies reach this host. They get the variables `also` of this
    process's environment besides those that every replica gets, and run as one of `accounts`, within `limits`. `pool`:
    the accounts of deployments; by default that of `home`.

    Records are in `home`/replicas, logs in `home`/logs/replicas. A process becomes a replica once its record is
    written, and ends if its worker does before; one whose record is lost is found by ROLLWAY_ROUTE in its environment.
    """

    def __init__(  # noqa: PLR0913 -- of these callers name what is not usual
        self,
        home: Path,
        ports: range = REPLICA_PORTS,
        address: str = LOOPBACK,
        *,
        also: Collection[str] = (),
        accounts: Accounts = Accounts(),  # noqa: B008  (it is frozen)
        limits: ProcessLimits = ProcessLimits(),  # noqa: B008
        pool: AccountPool | None = None,
    ) -> None:
        self._home = home.resolve()
        self._surroundings = Surroundings(self._home, address, also)
        self._accounts = accounts
        self._owners = Owners.of(accounts, self._home, pool)
        self._limits = limits
        self._ports = ports
        self._records = RecordFolder(self._home)
        self._logs = ProcessLogs(self._home)
        self._holders = PortHolders(self._owners)

    def start(self, request: ReplicaRequest) -> Replica:
        """Start the replica of this route id, or return the one that was started before, even if it has ended.

        Raises ReplicaStartError when the command cannot be run or no port is free, and OSError when `home` cannot be
        written, or nobody knows in time what became of it; nothing is remembered then.
        """
        deadline = time.monotonic() + _BEGIN_PATIENCE_SECONDS
        while True:
            record = self._settled(self._records.load(request.route_id)) or self._hold(request)
            if isinstance(record, _Held):
                return self._let_begin(record).replica
            if record.begun or time.monotonic() > deadline:  # nobody is held for so long
                return record.replica
            time.sleep(_LOOK_AGAIN_SECONDS)

    def find(self, route_id: UUID) -> Replica | None:
        """The replica of this route id, running or ended; None when it was never started or was forgotten."""
        record = self._find(route_id)
        if record is None or not record.begun:
            return record.replica if record else None
        if record.ended:
            return replace(record.replica, cause=self._cause_of(record), stranger=self._stranger_after(record))
        holding = self._holders.of(record)
        return replace(record.replica, listens=holding.listens, stranger=holding.stranger)

    def _stranger_after(self, record: ReplicaRecord) -> str:
        """The stranger at the port of a replica that has ended with an error, as when a port is in use already."""
        is_by_error = record.exit_code is not None and record.exit_code > 0 and not record.asked_to_end
        return self._holders.of(record).stranger if is_by_error else ""

    def _cause_of(self, record: ReplicaRecord) -> str:
        is_owner = partial(self._owners.may_be, deployment=record.deployment)
        tail = ""
        with suppress(OSError):
            tail = self.log_tail(record.route_id, _LOG_LINES)
        return cause_of_end(record, tail, self._home, is_owner)

    def everyone(self) -> Sequence[Replica]:
        """Every replica on this host, running or ended, also those whose record is missing."""
        records = self._records.all()
        drop_children_except({record.process for record in records.values()})
        settled = {route_id: self._settled(record) for route_id, record in records.items()}
        unrecorded = sightings(self._home, self._owners.may_be, pids_of(records)).keys() - records.keys()
        states = [record or self._find(route_id) for route_id, record in (settled | dict.fromkeys(unrecorded)).items()]
        return [record.replica for record in states if record]

    def terminate(self, route_id: UUID, _request: ReplicaRequest | None = None, /) -> None:
        """Send SIGTERM to its process group, the last of which it ends with then. No error when it is gone."""
        record = self._find(route_id)
        if record and record.process and not record.ended:
            self._note_asked(record)
            send_to_group(record.process, signal.SIGTERM)

    def kill(self, route_id: UUID, _request: ReplicaRequest | None = None, /) -> None:
        """Send SIGKILL to it and to all its descendants, even if it is gone itself. No error when all are gone."""
        record = self._find(route_id)
        if record:
            self._kill_family(record)

    def forget(self, route_id: UUID) -> None:
        """Drop the record of an ended replica and kill what it left running; its log stays. A running one is kept."""
        current = self._find(route_id)
        if current and current.ended:
            self._kill_family(current)  # before the lock: they may be many, and all starts of the host wait for it
            end_keeper(current.log_keeper)
        with self._records.locked():
            records = self._records.all()
            record = self._resolve(route_id, records)
            if record and not (current and record.ended):
                return
            self._records.remove(route_id)
            if record and _was_last(record, records.values()):
                self._owners.end_account_of(record.deployment)

    def _kill_family(self, record: ReplicaRecord) -> None:
        if record.process:
            is_owner = partial(self._owners.may_be, deployment=record.deployment)
            kill_family(record.route_id, record.process, is_owner)

    def log_tail(self, route_id: UUID, lines: int) -> str:
        """The last lines of its output; empty when there is none."""
        record = self._records.load(route_id)
        if record and record.ended:
            wait_for_end(record.log_keeper, _LOG_PATIENCE_SECONDS)
        return self._logs.tail(route_id, lines)

    def _find(self, route_id: UUID) -> ReplicaRecord | None:
        record = self._settled(self._records.load(route_id))
        if record:
            return record
        with self._records.locked():
            return self._resolve(route_id, self._records.all())

    def _settled(self, record: ReplicaRecord | None) -> ReplicaRecord | None:
        """The record as it is now, noting an end; None where there is no replica, which `_resolve` clears up."""
        if record is None or record.is_nothing:
            return None
        current = record.as_seen()
        if current != record:
            # on a full disk the end is still returned, and noted by a later call
            with suppress(OSError), self._records.locked():
                return self._note_end(current)
        return self._with_keeper(current)

    def _with_keeper(self, record: ReplicaRecord) -> ReplicaRecord:
        """The record of a running replica: with another keeper of its log, where the keeper was killed."""
        if record.ended or record.process is None or record.log_keeper is None or is_alive(record.log_keeper):
            return record
        with self._records.locked():
            latest = self._records.load(record.route_id)
            if latest is None or latest.process != record.process or latest.log_keeper != record.log_keeper:
                return latest or record
            kill_group(record.log_keeper)  # a part of it may be left, and read next to the next one
            log = self._logs.path(record.route_id)
            keeper = keep_again(log, self._limits.logs, record.process.pid, record.log_pipe)
            updated = latest.model_copy(update={"log_keeper": keeper})
            try:
                self._records.write(updated)
            except OSError:
                kill_group(keeper)  # a full disk: the next look tries again
                return record
        _log.warning("who kept a replica's log was killed", route=str(record.route_id), another=keeper is not None)
        return updated

    def _resolve(self, route_id: UUID, records: Mapping[UUID, ReplicaRecord]) -> ReplicaRecord | None:
        """Under the lock: the replica as it is. A process whose record is unfinished, broken or missing is adopted."""
        record = records.get(route_id)
        if record and not record.is_nothing:
            current = record.as_seen()
            return record if current == record else self._note_end(current)
        sighting = sightings(self._home, self._owners.may_be, pids_of(records)).get(route_id)
        if sighting is None:
            return None
        adopted = ReplicaRecord.of(sighting, record.port if record else None)
        self._records.write(adopted)
        return adopted

    def _note_asked(self, record: ReplicaRecord) -> None:
        with suppress(OSError), self._records.locked():  # on a full disk it is asked anyway
            latest = self._records.load(record.route_id)
            if latest and latest.process == record.process and not latest.ended:
                self._records.write(latest.model_copy(update={"asked_to_end": True}))

    def _note_end(self, record: ReplicaRecord) -> ReplicaRecord:
        """Write the end down, under the lock, unless another worker has done so, with or without the exit code."""
        latest = self._records.load(record.route_id)
        if latest is None or latest.process != record.process or latest.exit_code is not None:
            return latest if latest and latest.process else record
        self._records.write(record)
        return record

    def _hold(self, request: ReplicaRequest) -> "ReplicaRecord | _Held":
        """Hold a process for it, whose record is written; or the replica that somebody else has started meanwhile."""
        with self._records.locked():
            records = self._records.all()
            if current := self._resolve(request.route_id, records):
                return current
            port = self._free_port(records)
            account = account_of(request, self._accounts, self._owners.pool)
            env = self._surroundings.variables(request, port, account)
            with kept_log(self._logs.path(request.route_id), self._limits.logs, account) as log:
                process = hold(request, env, log.output, Confines(account, self._limits, self._home))
            record = ReplicaRecord(
                route_id=request.route_id,
                deployment=request.deployment,
                revision=request.revision,
                port=port,
                address=self._surroundings.address,
                process=adopt_child(process.child),
                uid=account.uid if account else os.geteuid(),
                starter=identify(os.getpid()),
                begun=False,
                log_keeper=log.keeper,
                log_pipe=log.pipe,
                access=access_of(request, env, account),
                stop_grace_seconds=request.spec.stop_grace_seconds,
            )
            try:
                self._records.write(record)
            except OSError:
                process.drop()
                raise
            return _Held(record, process)

    def _let_begin(self, replica: "_Held") -> ReplicaRecord:
        """Begin outside of the lock: however long it takes to find its command, all others of this host are started."""
        try:
            replica.process.begin()
        except (ReplicaStartError, OSError):
            with self._records.locked():
                self._records.remove(replica.record.route_id)
            end_keeper(replica.record.log_keeper)
            raise
        with self._records.locked():
            latest = self._records.load(replica.record.route_id) or replica.record
            started = latest.model_copy(update={"begun": True, "starter": None})
            with suppress(OSError):  # a full disk: others wait for a while before they take it for a replica
                self._records.write(started)
        return started

    def _free_port(self, records: Mapping[UUID, ReplicaRecord]) -> int:
        holders = {record.port: record for record in records.values() if not record.ended}

        def is_reserved(port: int) -> bool:
            holder = holders.get(port)
            return holder is not None and (holder.process is None or is_alive(holder.process))

        return given_port(self._ports, is_reserved, self._owners.pool.accounts())


@dataclass(frozen=True, slots=True)
class _Held:
    """A process that waits to become a replica, and its record."""

    record: ReplicaRecord
    process: HeldProcess


def _was_last(record: ReplicaRecord, among: Iterable[ReplicaRecord]) -> bool:
    """Whether no other replica of its deployment runs here: then what still has its account is left over."""
    others = (other for other in among if other.route_id != record.route_id)
    return all(other.deployment != record.deployment or other.ended for other in others)


_IN_FRONT = {
    "nginx": "nginx -g 'daemon off;'",
    "apache2": "-D FOREGROUND",
    "httpd": "-D FOREGROUND",
    "redis-server": "--daemonize no",
    "valkey-server": "--daemonize no",
    "php-fpm": "--nodaemonize",
    "sshd": "-D",
}
"""The option by which a program stays in the foreground, for programs known to leave it."""


def cause_of_end(record: ReplicaRecord, log_tail: str, home: Path, is_owner: IsOwner) -> str:
    """Half a sentence, or an empty one where nothing is seen.

    it ended well, and what it has left runs on      -> it went into the background
    its user may not enter or run what it needs      -> what is closed
    the script of a shell has lines with CR LF       -> the script
    """
    if record.process is None or record.exit_code is None or record.exit_code < 0 or record.asked_to_end:
        return ""
    if record.exit_code == 0:
        traces = left_of(record.route_id, record.process, is_owner)
        return _in_the_background(traces[0]) if traces else ""
    if record.access is None:
        return ""
    if barrier := record.access.barrier_after(record.exit_code, log_tail, home):
        return f"the user {record.access.user!r}, as whom it ran, {barrier}"
    script = record.access.with_crlf(log_tail)
    return (
        f"the lines of {script} end as on Windows, by CR LF: a shell, and the system, take LF alone" if script else ""
    )


def _in_the_background(process: psutil.Process) -> str:
    name = ""
    with suppress(psutil.Error):
        name = process.name()
    how = _IN_FRONT.get(name, "by its option for that, or without the one to be a daemon")
    who = f" as {name}" if name else ""
    return f"it went into the background{who} (process {process.pid}): a replica stays in the foreground, {how}"
