"""Whose processes are, by one look at each: a machine may have thousands of them."""

import os
from collections.abc import Callable
from pathlib import Path

HAS_PROC = Path("/proc/self/environ").exists()

IsOwner = Callable[[int], bool]
"""Whether a process of the user of that number is meant."""


def may_be_of(pid: int, is_owner: IsOwner) -> bool:
    """Whether a process may be of these owners. One that is gone is not; one that may not be traced is always.

    The system shows root for the owner of those, and a system without /proc shows nobody.
    """
    try:
        uid = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116  # half the price of a Path
    except OSError:
        return not HAS_PROC
    return uid == 0 or is_owner(uid)
