"""The account for replicas: what runs reads nothing of what steers it, where root may make an account."""

import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from runtime.process.accounts import REPLICA_USER

_NOBODY = 65534
"""The uid that owns nothing, on every Linux."""


def made_replica_user(say: Callable[[str], None]) -> str:
    """The name of the account for replicas, made if there is none yet; empty where that cannot be."""
    if os.geteuid() != 0:
        return ""
    try:
        _run_as(_NOBODY, _NOBODY, 'test -x "$0" && cd "$1"')
    except (OSError, subprocess.SubprocessError):
        say(f"run as root: another user may not enter {Path.cwd()}, or not run {sys.executable}")
        return ""
    try:
        if not _is_known():
            path = f"{os.environ.get('PATH', '')}:/usr/sbin"  # useradd stands there, and not on every PATH
            subprocess.run(_MAKE, capture_output=True, check=True, env={"PATH": path})  # noqa: S603 -- the words of _MAKE
        account = pwd.getpwnam(REPLICA_USER)
        _run_as(account.pw_uid, account.pw_gid, ":")
    except (OSError, KeyError, subprocess.SubprocessError) as error:
        say(f"no account of their own can be made for them ({error}): they run as root")
        return ""
    say(f"run as the user {REPLICA_USER}, who cannot read this home; ROLLWAY_REPLICA_USER names another")
    return REPLICA_USER


_MAKE = (
    *("useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"),
    *("--shell", "/usr/sbin/nologin", "--comment", "replicas of Rollway", REPLICA_USER),
)


def _run_as(uid: int, gid: int, words: str) -> None:
    """Run a line of the shell, given this Python and this folder. Raises OSError or SubprocessError."""
    command = ("/bin/sh", "-c", words, sys.executable, Path.cwd())
    subprocess.run(command, capture_output=True, check=True, user=uid, group=gid, extra_groups=[])  # noqa: S603 -- ours


def _is_known() -> bool:
    try:
        return bool(pwd.getpwnam(REPLICA_USER))
    except KeyError:
        return False
