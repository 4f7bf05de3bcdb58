"""The logs of replica processes: where each is, its end, and how all of them are kept small."""

import os
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from domain.installation.settings import LogLimits
from runtime.machine.log_files import remove_ended, rotate, tail
from runtime.process.record import RecordFolder

_MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A part of a log, and where to read on."""

    text: str
    place: int


class ProcessLogs:
    """The logs under `home`/logs/replicas, a file for each route id; they outlive their replicas."""

    def __init__(self, home: Path) -> None:
        self.folder = home.resolve() / "logs" / "replicas"
        self._records = RecordFolder(home.resolve())

    def path(self, route_id: UUID) -> Path:
        """Return where the output of this replica goes."""
        return self.folder / f"{route_id}.log"

    def tail(self, route_id: UUID, lines: int) -> str:
        """The last lines of its output; empty when there is none."""
        return tail(self.path(route_id), lines)

    def read_on(self, route_id: UUID, place: int | None, lines: int) -> "LogPiece":
        """Whole lines from `place` on, 64 KiB at most; without a place the last `lines` lines.

        From the beginning where the log was begun anew.
        """
        path = self.path(route_id)
        if place is None:
            place = _size_of(path)
            text = self.tail(route_id, lines)
            return LogPiece(f"{text}\n" if text else "", place)
        try:
            with path.open("rb") as file:
                place = place if place <= os.fstat(file.fileno()).st_size else 0
                file.seek(place)
                read = file.read(_MOST_BYTES)
        except OSError:
            return LogPiece("", place)
        whole = read.rpartition(b"\n")[0] + b"\n" if b"\n" in read else read if len(read) == _MOST_BYTES else b""
        return LogPiece(whole.decode(errors="replace"), place + len(whole))

    def keep_small(self, limits: LogLimits) -> None:
        """Begin logs anew that are too big, and remove those of replicas that ended long ago. Raises OSError."""
        for log in self.folder.glob("*.log"):
            rotate(log, limits)
        known = {str(route_id) for route_id in self._records.route_ids()}
        remove_ended(self.folder, known.__contains__, limits)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
