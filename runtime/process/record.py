"""The records of replica processes: one small JSON file for each route id, replaced whole, under one lock."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self
from uuid import UUID

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from runtime.machine.identity import Identity, is_alive, kill_if_stopped
from runtime.machine.path_access import file_lock, holder_of
from runtime.process.process_table import Sighting, exit_code, group_is_alive
from runtime.process.program_access import ReplicaAccess
from runtime.protocol import Replica

LOCK_PATIENCE_SECONDS = 30.0
LOOPBACK = "127.0.0.1"
_STANDSTILL_SECONDS = 5.0
_log = structlog.get_logger(__name__)


class ReplicaRecord(BaseModel):
    """One replica. The grace is what its revision says, from SIGTERM to SIGKILL.

    It ends with its process; one that was asked to end, with the last one of its process group. Until it has `begun`,
    its process is held by `starter`, and ends with that one; a record without a process is of a version before.
    `access`: what it began with; None in a record of a version before.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    route_id: UUID
    deployment: str
    revision: str
    port: int
    address: str = LOOPBACK
    process: Identity | None = None
    uid: int | None = None
    starter: Identity | None = None
    begun: bool = True
    log_keeper: Identity | None = None
    log_pipe: int | None = None
    access: ReplicaAccess | None = None
    stop_grace_seconds: float = 10.0
    asked_to_end: bool = False
    ended: bool = False
    exit_code: int | None = None

    @classmethod
    def of(cls, sighting: Sighting, port: int | None) -> Self:
        """The record of a process whose own was unfinished (`port` is from it), broken or missing."""
        env = sighting.env
        return cls(
            route_id=sighting.route_id,
            deployment=env.get("ROLLWAY_DEPLOYMENT", ""),
            revision=env.get("ROLLWAY_REVISION", ""),
            port=port or sighting.port,
            address=env.get("ROLLWAY_ADDRESS", LOOPBACK),
            process=sighting.identity,
            uid=sighting.uid,
        )

    def as_seen(self) -> Self:
        """The record, with what the operating system says of its process. An end is final."""
        if self.process is None or self.exit_code is not None or (not self.ended and self._runs(self.process)):
            return self
        return self.model_copy(update={"ended": True, "exit_code": exit_code(self.process)})

    @property
    def is_nothing(self) -> bool:
        """Whether it never became a replica, and no process is left that could make it one."""
        if self.begun:
            return self.process is None
        return not is_alive(self.process) and not is_alive(self.starter)

    def _runs(self, process: Identity) -> bool:
        return is_alive(process) or (self.asked_to_end and group_is_alive(process))

    @property
    def replica(self) -> Replica:
        """The replica that the runtime shows to others."""
        handle = f"pid:{self.process.pid if self.process else None}"
        return Replica(self.route_id, handle, f"{self.address}:{self.port}", not self.ended, self.exit_code)


def pids_of(records: Mapping[UUID, ReplicaRecord]) -> set[int]:
    return {record.process.pid for record in records.values() if record.process}


class RecordFolder:
    """The records under `home`/replicas. Reading needs no lock; writing and removing are done inside `locked()`."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "replicas"

    @property
    def lock_file(self) -> Path:
        """The lock that every start and stop on this host waits for."""
        return self._folder / ".lock"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclusive among all threads and processes of this host. Raises TimeoutError after 30 s of waiting.

        A process that is stopped (SIGSTOP) while it holds this would hold up all starts and stops of its host: it is
        killed after 5 s, where the system says who holds it. What it left half done is cleared up as after any kill.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.lock_file
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(path, _STANDSTILL_SECONDS))
            except TimeoutError:
                _kill_stopped_holder(path)
                stack.enter_context(file_lock(path, LOCK_PATIENCE_SECONDS - _STANDSTILL_SECONDS))
            yield

    def load(self, route_id: UUID) -> ReplicaRecord | None:
        """The record of this route id; None when there is none or its file cannot be understood."""
        return _parsed(self._path(route_id))

    def all(self) -> dict[UUID, ReplicaRecord]:
        """Every record that can be understood, by route id; files that cannot are skipped."""
        return {route_id: record for route_id in self.route_ids() if (record := self.load(route_id))}

    def route_ids(self) -> list[UUID]:
        try:
            names = os.listdir(self._folder)  # noqa: PTH208  # thrice as fast as iterdir, and done in every sweep
        except FileNotFoundError:
            return []
        ids = (_route_id(name.removesuffix(".json")) for name in names if name.endswith(".json"))
        return [route_id for route_id in ids if route_id]

    def longest_grace(self) -> float:
        """The longest time, in seconds, that a running replica may take to end."""
        return max((record.stop_grace_seconds for record in self.all().values() if not record.ended), default=0.0)

    def write(self, record: ReplicaRecord) -> None:
        """Replace the record in one step: a reader sees the old one or the new one."""
        path = self._path(record.route_id)
        draft = path.with_suffix(".draft")
        draft.write_bytes(record.model_dump_json().encode())
        draft.replace(path)

    def remove(self, route_id: UUID) -> None:
        """Drop the record; no error when it is gone."""
        self._path(route_id).unlink(missing_ok=True)

    def _path(self, route_id: UUID) -> Path:
        return self._folder / f"{route_id}.json"


def _kill_stopped_holder(lock: Path) -> None:
    pid = holder_of(lock)
    if pid and kill_if_stopped(pid):
        _log.warning("killed: it was stopped while it held the lock on this host's replicas", pid=pid)


def _parsed(path: Path) -> ReplicaRecord | None:
    try:
        record = ReplicaRecord.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return record if str(record.route_id) == path.stem else None


def _route_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
