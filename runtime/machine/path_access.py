"""Files and folders of this machine: access of a user to them, their owners, and locks."""

import fcntl
import os
import pwd
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class Visitor:
    """A user of this machine, with all groups. Without a number: any user who owns nothing here."""

    uid: int | None = None
    gids: frozenset[int] = frozenset()

    def may(self, status: os.stat_result, right: int) -> bool:
        """Whether the user has this right on a file of this status: `stat.S_IROTH`, or `S_IXOTH`."""
        if self.uid == 0:
            return True
        if status.st_uid == self.uid:
            return bool(status.st_mode & right << 6)
        return bool(status.st_mode & (right << 3 if status.st_gid in self.gids else right))


ANYBODY = Visitor()


def closed_folder(path: Path) -> Path | None:
    """The first folder on the way to `path` that only its owner and group may enter; None when there is none."""
    return next(iter(closed_folders(path, ANYBODY)), None)


def closed_folders(path: Path, visitor: Visitor) -> Sequence[Path]:
    """Each folder on the way to `path` that this user may not enter.

    A link is followed step by step: the Python of a virtual environment is one, and what it leads to may lie elsewhere.
    """
    way = (
        step for step, status in _way(path) if stat.S_ISDIR(status.st_mode) and not visitor.may(status, stat.S_IXOTH)
    )
    return tuple(dict.fromkeys(way))  # a link may lead back through a folder


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Each step to `path` and to its targets, as far as they exist."""
    rest, here, links = list(_parts(path.absolute())), Path("/"), 0
    while rest:
        step = here / rest.pop(0)
        try:
            status = step.lstat()
            target = step.readlink() if stat.S_ISLNK(status.st_mode) else None
        except OSError:
            return
        if target is not None and links < _MOST_LINKS:
            links += 1
            rest, here = [*_parts(Path(os.path.normpath(here / target))), *rest], Path("/")
            continue
        yield step, status
        here = step


def way_in(folders: Sequence[Path], home: Path) -> str:
    """The remedy that lets another user into these folders. Root's own folder and `home` are never opened."""
    owner = _owner_of(folders[0])
    if any(path.is_relative_to(place) for path in folders for place in (Path(pwd.getpwuid(0).pw_dir), home)):
        inside = "it must stay closed, so put what is run where every user may enter, as in /opt or /srv"
    else:
        inside = f"'chmod o+x {' '.join(map(str, folders))}' lets it pass"
    if folders[0].is_relative_to(home) or not owner or os.geteuid():  # only root lets them run as somebody else
        return inside
    return f"{inside}; or 'rollway down' and 'ROLLWAY_REPLICA_USER={owner} rollway up' let replicas run as its owner"


def _owner_of(folder: Path) -> str:
    with suppress(OSError, KeyError):
        return pwd.getpwuid(folder.stat().st_uid).pw_name
    return ""


def _parts(path: Path) -> tuple[str, ...]:
    return path.parts[1:]


_RETRY_SECONDS = 0.002
_LONG_SECONDS = 0.5
_LONGEST_COMMAND = 80
_LOCKS = Path("/proc/locks")
"""1: FLOCK  ADVISORY  WRITE 4711 fe:01:4202 0 EOF"""


@contextmanager
def file_lock(path: Path, patience_seconds: float, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock on `path`, whose folder must exist; `on_wait` is called once when another process holds it.

    Raises TimeoutError after the patience: a process that is stopped while it holds the lock hangs nobody for ever.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _is_taken_by_us(descriptor):
            on_wait()
            _wait_for(descriptor, path, patience_seconds)
        yield
    finally:
        os.close(descriptor)


def holder_of(path: Path) -> int | None:
    """The pid of the process that holds the lock on `path`; None when there is none, or the system does not say."""
    try:
        status, table = path.stat(), _LOCKS.read_text()
    except OSError:
        return None
    where = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    rows = (row.split() for row in table.splitlines())
    return next((int(pid) for _, kind, _, _, pid, at, *_ in rows if (kind, at) == ("FLOCK", where)), None)


def stuck_holder_of(path: Path) -> int | None:
    """The pid of a process that has held the lock on `path` for too long; None when there is none."""
    pid = holder_of(path)
    if pid is None:
        return None
    time.sleep(_LONG_SECONDS)
    return pid if holder_of(path) == pid else None


def process_name(pid: int) -> str:
    """The process in words: process 4711 (python -m celery worker)."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        words = []
    command = " ".join(words).strip()[:_LONGEST_COMMAND]
    return f"process {pid} ({command})" if command else f"process {pid}"


def _wait_for(descriptor: int, path: Path, patience_seconds: float) -> None:
    deadline = time.monotonic() + patience_seconds
    while not _is_taken_by_us(descriptor):
        if time.monotonic() > deadline:
            pid = holder_of(path)
            who = process_name(pid) if pid else "another process"
            raise TimeoutError(f"{who} has held {path} for {patience_seconds:g} s")
        time.sleep(_RETRY_SECONDS)


def _is_taken_by_us(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def why_not_trusted(folder: Path) -> str | None:
    """Why a folder is not to be trusted, and what to do; None when it is ours alone, or does not exist yet."""
    try:
        status = folder.stat()
    except OSError:
        return None  # there is none yet, or its use fails by itself
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid} and you are user {os.geteuid()}: run this as its owner"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "may be written by others than its owner: run 'chmod go-w' on it"
    return None
