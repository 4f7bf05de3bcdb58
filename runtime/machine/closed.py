"""Finds the folders that keep a user from a path, also behind symbolic links, and what lets that user in."""

import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class Visitor:
    """A user of this machine, with all groups. Without a number: any user who owns nothing here."""

    uid: int | None = None
    gids: frozenset[int] = frozenset()

    def may(self, status: os.stat_result, right: int) -> bool:
        """Whether it has the right on what has this status: `stat.S_IROTH`, or `S_IXOTH`."""
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
    """Each step to `path` and to what it leads to, as far as they are there."""
    left, here, links = list(_parts(path.absolute())), Path("/"), 0
    while left:
        step = here / left.pop(0)
        try:
            status = step.lstat()
            target = step.readlink() if stat.S_ISLNK(status.st_mode) else None
        except OSError:
            return
        if target is not None and links < _MOST_LINKS:
            links += 1
            left, here = [*_parts(Path(os.path.normpath(here / target))), *left], Path("/")
            continue
        yield step, status
        here = step


def way_in(closed: Sequence[Path], home: Path) -> str:
    """What lets another user reach what lies behind these folders. Root's own folder and `home` are never opened."""
    owner = _owner_of(closed[0])
    if any(path.is_relative_to(kept) for path in closed for kept in (Path(pwd.getpwuid(0).pw_dir), home)):
        inside = "it must stay closed, so put what is run where every user may enter, as in /opt or /srv"
    else:
        inside = f"'chmod o+x {' '.join(map(str, closed))}' lets it pass"
    if closed[0].is_relative_to(home) or not owner or os.geteuid():  # only root lets them run as somebody else
        return inside
    return f"{inside}; or 'rollway down' and 'ROLLWAY_REPLICA_USER={owner} rollway up' let replicas run as its owner"


def _owner_of(folder: Path) -> str:
    with suppress(OSError, KeyError):
        return pwd.getpwuid(folder.stat().st_uid).pw_name
    return ""


def _parts(path: Path) -> tuple[str, ...]:
    return path.parts[1:]
