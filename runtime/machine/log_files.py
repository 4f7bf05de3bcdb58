"""Log files that others write: kept small while they are written, read across their parts, removed when they are old.

The writer of a log holds it open, appends, and outlives us, so it cannot be given another file. A log that is too big
is copied and then cut to nothing, and its writer continues at the new beginning:

    web.log    the log itself, in which the newest lines are
    web.log.1  what it was before, then web.log.2, and so on

What is written between the last read and the cut is lost: that of some microseconds, or of a moment on a busy machine.
On a full disk nothing can be copied, and the log is cut anyway, since it fills the disk.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from domain.installation.settings import LogLimits

_MEGABYTE = 1024 * 1024
_DAY_SECONDS = 86_400
_LONGEST_LINE = 64 * 1024


def rotate(log: Path, limits: LogLimits) -> bool:
    """Truncate the log if it is too big; returns whether it was. No error when it is gone."""
    try:
        if log.stat().st_size <= limits.most_bytes:
            return False
        with log.open("r+b") as file:
            with suppress(OSError):  # a full disk
                _keep(file, log, limits)
            file.truncate(0)
    except FileNotFoundError:
        return False
    return True


def tail(log: Path, lines: int) -> str:
    """The last `lines` lines of a log, of its last megabyte at most; empty when there is none."""
    text = b""
    for part in _parts(log):
        text = _end_of(part, _MEGABYTE - len(text)) + text
        if len(text) >= _MEGABYTE or text.count(b"\n") > lines:
            break
    return "\n".join(text.decode(errors="replace").splitlines()[-lines:]) if lines > 0 else ""


def remove_ended(folder: Path, is_running: Callable[[str], bool], limits: LogLimits) -> None:
    """Remove logs of replicas that have ended: those too old, and the oldest of them that are too much together.

    `is_running`: asked with the name of each log, without what follows its first dot.
    """
    room, since = limits.most_ended_bytes, time.time() - limits.ended_days * _DAY_SECONDS
    ended = [entry for entry in _found_in(folder) if not is_running(entry[2].name.partition(".")[0])]
    for written_at, size, path in sorted(ended, reverse=True):
        room -= size
        if written_at < since or room < 0:
            path.unlink(missing_ok=True)


def _keep(file: BinaryIO, log: Path, limits: LogLimits) -> None:
    """The parts move on by one, and the log becomes the first: of one that grew too fast whole lines of its end."""
    if limits.files == 1:
        return
    for number in range(limits.files - 2, 0, -1):
        with suppress(FileNotFoundError):
            _part(log, number).replace(_part(log, number + 1))
    draft = log.with_name(f"{log.name}.draft")
    if (before := os.fstat(file.fileno()).st_size - 2 * limits.most_bytes) > 0:
        file.seek(before)
        file.readline(_LONGEST_LINE)
    try:
        with open(draft, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as copy:
            _copy(file, copy, 3 * limits.most_bytes)
        draft.replace(_part(log, 1))
    finally:
        draft.unlink(missing_ok=True)


def _copy(file: BinaryIO, copy: BinaryIO, most_bytes: int) -> None:
    """Read to the end, with what comes meanwhile; a writer faster than this is left at the end of a line."""
    while chunk := file.read(_MEGABYTE):
        most_bytes -= len(chunk)
        if most_bytes <= 0:
            copy.write(chunk[: chunk.rfind(b"\n") + 1] or chunk)
            return
        copy.write(chunk)


def _parts(log: Path) -> Iterator[Path]:
    """The files of a log, the newest first."""
    yield log
    number = 1
    while _part(log, number).exists():
        yield _part(log, number)
        number += 1


def _part(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def _end_of(path: Path, most_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most_bytes))
            return file.read(most_bytes)
    except FileNotFoundError:
        return b""


def _found_in(folder: Path) -> list[tuple[float, int, Path]]:
    """The last write, the size and the path of each file."""
    files = []
    for path in folder.iterdir() if folder.is_dir() else ():
        with suppress(FileNotFoundError):
            about = path.stat()
            files.append((about.st_mtime, about.st_size, path))
    return files
