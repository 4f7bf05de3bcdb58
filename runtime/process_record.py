"""What is remembered of a replica process: one small JSON file per route id, written atomically under one lock."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from runtime.base import Replica
from runtime.process_table import Identity, Sighting

LOCK_PATIENCE_SECONDS = 30.0
LOOPBACK = "127.0.0.1"


class ReplicaRecord(BaseModel):
    """One replica. Without `pid` it is starting; `started` is in seconds after the host's boot."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    route_id: UUID
    deployment: str
    revision: str
    port: int
    address: str = LOOPBACK
    pid: int | None = Field(default=None, gt=1)
    started: float = 0.0
    ended: bool = False
    exit_code: int | None = None

    @classmethod
    def of(cls, sighting: Sighting, port: int | None) -> Self:
        """Of a process whose record was unfinished (`port` is what it says), broken or lost."""
        identity, env = sighting.identity, sighting.env
        return cls(
            route_id=identity.route_id,
            deployment=env.get("ROLLWAY_DEPLOYMENT", ""),
            revision=env.get("ROLLWAY_REVISION", ""),
            port=port or int(env.get("PORT", "0")),
            address=env.get("ROLLWAY_ADDRESS", LOOPBACK),
            pid=identity.pid,
            started=identity.started,
        )

    @property
    def identity(self) -> Identity:
        """Which process it is; meaningless without a pid."""
        return Identity(self.route_id, self.pid or 0, self.started)

    @property
    def replica(self) -> Replica:
        """As the runtime shows it to others."""
        return Replica(self.route_id, f"pid:{self.pid}", f"{self.address}:{self.port}", not self.ended, self.exit_code)


class RecordFolder:
    """The records under `home`/replicas. Reading needs no lock; writing and removing are done inside `locked()`."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "replicas"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclusive among all threads and processes of this host. Raises TimeoutError after 30 s of waiting."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / ".lock"
        with path.open("ab") as lock:
            _wait_for(lock, path)
            yield

    def read(self, route_id: UUID) -> ReplicaRecord | None:
        """The record of this route id; None when there is none or its file cannot be understood."""
        return _parsed(self._path(route_id))

    def all(self) -> dict[UUID, ReplicaRecord]:
        """Every record that can be understood, by route id; files that cannot are skipped."""
        return {route_id: record for route_id in self.route_ids() if (record := self.read(route_id))}

    def route_ids(self) -> list[UUID]:
        """The route ids that have a file, whatever is in it."""
        try:
            names = os.listdir(self._folder)  # noqa: PTH208  # thrice as fast as iterdir, and looked at in every sweep
        except FileNotFoundError:
            return []
        found = (_route_id(name.removesuffix(".json")) for name in names if name.endswith(".json"))
        return [route_id for route_id in found if route_id]

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


def _wait_for(lock: IO[bytes], path: Path) -> None:
    # Not a blocking flock: a stopped process that holds the lock must not hang every worker for ever.
    deadline = time.monotonic() + LOCK_PATIENCE_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                message = f"another process has held {path} for {LOCK_PATIENCE_SECONDS:g} s"
                raise TimeoutError(message) from None
            time.sleep(0.002)
