"""The logs of replica processes: where each is, its end, and how all of them are kept small.

A replica that wrote its log itself would fill the disk of Postgres within seconds. So a keeper, a process of its own,
reads a pipe and writes the log. It outlives workers as replicas do, and ends with the last process that can write into
the pipe, or when it is forgotten. The replica holds both ends of the pipe, so where its keeper was killed no write
breaks: the output waits in the pipe for the next keeper, which a worker starts as soon as it looks.
"""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import UUID

from domain.installation.settings import LogLimits
from runtime.machine.identity import Identity, wait_for_end
from runtime.machine.log_files import remove_ended, rotate, tail
from runtime.process.accounts import Account
from runtime.process.process_table import adopt_child, kill_group
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
        """The output file of this replica."""
        return self.folder / f"{route_id}.log"

    def tail(self, route_id: UUID, lines: int) -> str:
        """The last lines of its output; empty when there is none."""
        return tail(self.path(route_id), lines)

    def read_on(self, route_id: UUID, place: int | None, lines: int) -> "LogPiece":
        """Whole lines from `place` on, 64 KiB at most; without a place the last `lines` lines.

        From the beginning where the log was truncated.
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
                content = file.read(_MOST_BYTES)
        except OSError:
            return LogPiece("", place)
        whole = (
            content.rpartition(b"\n")[0] + b"\n"
            if b"\n" in content
            else content
            if len(content) == _MOST_BYTES
            else b""
        )
        return LogPiece(whole.decode(errors="replace"), place + len(whole))

    def keep_small(self, limits: LogLimits) -> None:
        """Truncate logs that are too big, and remove those of replicas that ended long ago. Raises OSError."""
        for log in self.folder.glob("*.log"):
            rotate(log, limits)
        names = {str(route_id) for route_id in self._records.route_ids()}
        remove_ended(self.folder, names.__contains__, limits)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# The first byte of what comes next is read before a full file is set aside: at the end there is none. What cannot be
# written, as on a full disk, is read on and dropped: a replica must not wait for its log for ever.
_KEEP = """
log=$1 most=$(($2 - 1)) files=$3 unbuffered=$4
drop() { [ "$(head -c 65536 | wc -c)" -gt 0 ] || exit; }
while :; do
  LD_PRELOAD=$unbuffered _STDBUF_O=0 head -c "$most" >>"$log" || { drop; continue; }
  head -c 1 >"$log.next" || { drop; continue; }
  [ -s "$log.next" ] || { rm -f "$log.next"; exit; }
  number=$files
  while [ $((number -= 1)) -gt 1 ]; do mv -f "$log.$((number - 1))" "$log.$number"; done
  [ "$files" -eq 1 ] || mv -f "$log" "$log.1"
  mv -f "$log.next" "$log"
  sleep 0.2
done
"""
"""The pause after each full file: a fast writer waits, and leaves the disk to others."""
_PRELOAD = "LD_PRELOAD="
_PATIENCE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class KeptLog:
    """A descriptor to write a log into, the process that keeps it, and the number of the pipe between them."""

    output: int
    keeper: Identity | None = None
    pipe: int | None = None


@contextmanager
def kept_log(log: Path, limits: LogLimits, account: Account | None) -> Iterator[KeptLog]:
    """Begin a log, which nobody keeps any more where the body raises. Raises OSError.

    Where this system's head reads more than it is asked for, the descriptor is of the log itself, and nobody keeps it.
    """
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    library = _unbuffered()
    if not library:
        with log.open("ab") as file:
            yield KeptLog(file.fileno())
        return
    ends, keeper = [*os.pipe()], None
    try:
        keeper = adopt_child(_keeper(ends[0], log, limits, library))
        if account:
            os.fchown(ends[1], account.uid, account.gid)  # so that it may open /dev/stderr again
        ends.append(os.open(f"/proc/self/fd/{ends[1]}", os.O_RDWR))
        yield KeptLog(ends[-1], keeper, os.fstat(ends[-1]).st_ino)
    except BaseException:
        _kill(keeper)
        raise
    finally:
        for end in ends:
            os.close(end)


def keep_again(log: Path, limits: LogLimits, writer: int, pipe: int | None) -> Identity | None:
    """A further keeper for the log that the process `writer` writes to; None where it has no such pipe now."""
    library = _unbuffered()
    for output in (1, 2) if library else ():
        path = f"/proc/{writer}/fd/{output}"
        with suppress(OSError):
            if os.readlink(path) != f"pipe:[{pipe}]":  # noqa: PTH115
                continue
            end = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
            try:
                if os.fstat(end).st_ino == pipe and stat.S_ISFIFO(os.fstat(end).st_mode):
                    os.set_blocking(end, True)
                    return adopt_child(_keeper(end, log, limits, library))
            finally:
                os.close(end)
    return None


def end_keeper(keeper: Identity | None) -> None:
    """End the keeper where a leftover of its replica still holds the pipe: earlier output is written by then."""
    wait_for_end(keeper, _PATIENCE_SECONDS)
    _kill(keeper)


def _kill(keeper: Identity | None) -> None:
    """Return once it writes nothing any more."""
    kill_group(keeper)
    wait_for_end(keeper, _PATIENCE_SECONDS)


def _keeper(pipe: int, log: Path, limits: LogLimits, library: str) -> subprocess.Popen[bytes]:
    """A process in a group of its own, which no signal to the worker's reaches; it leads no session, as replicas do."""
    words = (log.name, str(limits.most_bytes), str(limits.files), library)
    return subprocess.Popen(  # noqa: S603  # words of our own
        ("/bin/sh", "-c", _KEEP, "rollway-log", *words),
        env=_environment(),
        cwd=log.parent,
        stdin=pipe,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
        umask=0o077,
    )


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


@cache
def _unbuffered() -> str:
    """The library that makes head write at once, so that the next one loses nothing; empty where there is none."""
    script = "LD_PRELOAD=$1 _STDBUF_O=0; export LD_PRELOAD _STDBUF_O; head -c 1; head -c 1 >/dev/null; head -c 9"
    try:
        variables = _output("stdbuf", "-o0", "env").decode(errors="replace").splitlines()
        library = next((line.removeprefix(_PRELOAD) for line in variables if line.startswith(_PRELOAD)), "")
        return library if _output("/bin/sh", "-c", script, "rollway-log", library, stdin=b"abc") == b"ac" else ""
    except OSError:
        return ""


def _output(*words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(words, env=_environment(), input=stdin, capture_output=True, check=False).stdout  # noqa: S603
