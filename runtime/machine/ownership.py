"""Checks whose a folder is: one that somebody else may write in says what somebody else wants."""

import os
import stat
from pathlib import Path


def why_not_trusted(folder: Path) -> str | None:
    """Say what is wrong with it and what to do, to follow its name; None when it is ours alone, or not there yet."""
    try:
        found = folder.stat()
    except OSError:
        return None  # there is none yet, or its use fails by itself
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid} and you are user {os.geteuid()}: run this as its owner"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "may be written by others than its owner: run 'chmod go-w' on it"
    return None
