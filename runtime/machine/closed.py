"""Finds the folder that keeps another user from a path, also behind symbolic links."""

import os
import pwd
import stat
from pathlib import Path

_MOST_LINKS = 40


def closed_folder(path: Path) -> Path | None:
    """The first folder on the way to `path` that only its owner and group may enter; None when there is none.

    A link is followed step by step: the Python of a virtual environment is one, and what it leads to may lie elsewhere.
    """
    left, here, links = list(_parts(path.absolute())), Path("/"), 0
    while left:
        step = here / left.pop(0)
        try:
            found = step.lstat()
            target = step.readlink() if stat.S_ISLNK(found.st_mode) else None
        except OSError:
            return None
        if target is not None and links < _MOST_LINKS:
            links += 1
            left, here = [*_parts(Path(os.path.normpath(here / target))), *left], Path("/")
            continue
        if stat.S_ISDIR(found.st_mode) and not found.st_mode & stat.S_IXOTH:
            return step
        here = step
    return None


def way_in(closed: Path, home: Path) -> str:
    """What lets another user reach what lies behind that folder. Root's own folder and `home` are never opened."""
    if any(closed.is_relative_to(kept) for kept in (Path(pwd.getpwuid(0).pw_dir), home)):
        return "it must stay closed, so put what is run where every user may enter, as in /opt or /srv"
    return f"'chmod o+x {closed}' lets it pass"


def _parts(path: Path) -> tuple[str, ...]:
    return path.parts[1:]
