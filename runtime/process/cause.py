"""Why the process of a replica ended, where that is seen by more than its exit code."""

from contextlib import suppress
from pathlib import Path

import psutil

from runtime.machine.owned import IsOwner
from runtime.process.family import left_of
from runtime.process.record import ReplicaRecord

_IN_FRONT = {
    "nginx": "nginx -g 'daemon off;'",
    "apache2": "-D FOREGROUND",
    "httpd": "-D FOREGROUND",
    "redis-server": "--daemonize no",
    "valkey-server": "--daemonize no",
    "php-fpm": "--nodaemonize",
    "sshd": "-D",
}
"""By which option a program stays that is known to go."""


def cause_of_end(record: ReplicaRecord, log_tail: str, home: Path, is_owner: IsOwner) -> str:
    """Half a sentence, or an empty one where nothing is seen.

    it ended well, and what it has left runs on      -> it went into the background
    its user may not enter or run what it needs      -> what is closed
    the script of a shell has lines with CR LF       -> the script
    """
    if record.process is None or record.exit_code is None or record.exit_code < 0 or record.asked_to_end:
        return ""
    if record.exit_code == 0:
        left = left_of(record.route_id, record.process, is_owner)
        return _in_the_background(left[0]) if left else ""
    if record.access is None:
        return ""
    if barrier := record.access.barrier_after(record.exit_code, log_tail, home):
        return f"the user {record.access.user!r}, as whom it ran, {barrier}"
    script = record.access.with_crlf(log_tail)
    return (
        f"the lines of {script} end as on Windows, by CR LF: a shell, and the system, take LF alone" if script else ""
    )


def _in_the_background(process: psutil.Process) -> str:
    name = ""
    with suppress(psutil.Error):
        name = process.name()
    how = _IN_FRONT.get(name, "by its option for that, or without the one to be a daemon")
    who = f" as {name}" if name else ""
    return f"it went into the background{who} (process {process.pid}): a replica stays in the foreground, {how}"
