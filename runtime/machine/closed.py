"""Finds the folder that keeps another user from a path, also behind symbolic links."""

import os
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
        except OSError:
            return None
        if stat.S_ISLNK(found.st_mode) and links < _MOST_LINKS:
            links += 1
            target = Path(os.path.normpath(here / step.readlink()))
            left, here = [*_parts(target), *left], Path("/")
            continue
        if stat.S_ISDIR(found.st_mode) and not found.st_mode & stat.S_IXOTH:
            return step
        here = step
    return None


def _parts(path: Path) -> tuple[str, ...]:
    return path.parts[1:]
