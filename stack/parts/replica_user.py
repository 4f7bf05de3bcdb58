"""The account for replicas: what runs reads nothing of what steers it, where root may make an account."""

import os
import pwd
import subprocess
from collections.abc import Callable

from runtime.process.accounts import REPLICA_USER


def made_replica_user(say: Callable[[str], None]) -> str:
    """The name of the account for replicas, made if there is none yet; empty where that cannot be."""
    if os.geteuid() != 0:
        return ""
    try:
        if not _is_known():
            subprocess.run(_MAKE, capture_output=True, check=True)  # noqa: S603 -- the words of _MAKE
        account = pwd.getpwnam(REPLICA_USER)
        subprocess.run(("/bin/sh", "-c", ":"), user=account.pw_uid, group=account.pw_gid, extra_groups=[], check=True)
    except (OSError, KeyError, subprocess.SubprocessError) as error:
        say(f"no account of their own can be made for them ({error}): they run as root")
        return ""
    say(f"run as the user {REPLICA_USER}, who cannot read this home; ROLLWAY_REPLICA_USER names another")
    return REPLICA_USER


_MAKE = (
    *("useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"),
    *("--shell", "/usr/sbin/nologin", "--comment", "replicas of Rollway", REPLICA_USER),
)


def _is_known() -> bool:
    try:
        return bool(pwd.getpwnam(REPLICA_USER))
    except KeyError:
        return False
