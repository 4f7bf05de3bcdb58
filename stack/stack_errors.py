"""Errors of the stack: one sentence that names the way out."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from domain.text.errors import RollwayError


class StackError(RollwayError):
    """The stack cannot do what was requested; the message is for people and holds no secret."""


@contextmanager
def folder_errors(folder: Path) -> Iterator[None]:
    """Turn "no space", "read-only" and "not permitted" of the operating system into a StackError naming `folder`."""
    try:
        yield
    except OSError as error:
        raise StackError(_sentence(folder, error)) from error


def _sentence(folder: Path, error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return f"There is no space left for {folder}: free some, or set ROLLWAY_HOME to a folder on another disk."
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"Rollway may not write in {folder}: make it writable, or set ROLLWAY_HOME to a folder that is."
        case errno.ENOTDIR | errno.EEXIST:
            return f"{folder} is in the way of a file with that name: remove it, or set ROLLWAY_HOME to another folder."
        case _:
            return f"Rollway cannot use {folder} ({error.strerror}): set ROLLWAY_HOME to another folder."
