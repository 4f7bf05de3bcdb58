"""What writes the log of one replica: a process of its own that reads a pipe, so that no log is larger than it may be.

A replica that wrote its log itself would fill the disk of Postgres within seconds, whoever looks at it later. Its
keeper outlives workers as replicas do, and ends with the last process that can write into the pipe.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from domain.installation.log_limits import LogLimits
from runtime.machine.identity import Identity
from runtime.process.accounts import Account
from runtime.process.table import adopt_child

# The first byte of what comes next is read before a full file is set aside: at the end there is none. What cannot be
# written, as on a full disk, is read on and dropped: a replica must not wait for its log for ever.
_KEEP = """
log=$1 most=$(($2 - 1)) files=$3
drop() { [ "$(head -c 65536 | wc -c)" -gt 0 ] || exit; }
while :; do
  stdbuf -o0 head -c "$most" >>"$log" || { drop; continue; }
  head -c 1 >"$log.next" || { drop; continue; }
  [ -s "$log.next" ] || { rm -f "$log.next"; exit; }
  number=$files
  while [ $((number -= 1)) -gt 1 ]; do mv -f "$log.$((number - 1))" "$log.$number"; done
  [ "$files" -eq 1 ] || mv -f "$log" "$log.1"
  mv -f "$log.next" "$log"
  sleep 0.2
done
"""
"""With each file that is full it rests: who writes faster waits, and leaves the disk to others."""


@contextmanager
def kept_log(log: Path, limits: LogLimits, account: Account | None) -> Iterator[tuple[int, Identity | None]]:
    """A descriptor to write a log into, and the process that keeps it. Raises OSError.

    Where this system's head reads more than it is asked for, the descriptor is of the log itself.
    """
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _heads_are_exact():
        with log.open("ab") as file:
            yield file.fileno(), None
        return
    read, write = os.pipe()
    try:
        keeper = adopt_child(_keeper(read, log, limits))
        if account:
            os.fchown(write, account.uid, account.gid)  # so that it may open /dev/stderr anew
        yield write, keeper
    finally:
        os.close(read)
        os.close(write)


def _keeper(pipe: int, log: Path, limits: LogLimits) -> subprocess.Popen[bytes]:
    """A process in a group of its own, which no signal to the worker's reaches; it leads no session, as replicas do."""
    words = (log.name, str(limits.most_bytes), str(limits.files))
    return subprocess.Popen(  # noqa: S603  # words of our own
        ("/bin/sh", "-c", _KEEP, "rollway-log", *words),
        env=_environment(),
        cwd=log.parent,
        stdin=pipe,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
        umask=0o077,
    )


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


@cache
def _heads_are_exact() -> bool:
    """Whether a head leaves the next one what it has not written itself."""
    try:
        done = subprocess.run(
            ("/bin/sh", "-c", "stdbuf -o0 head -c 1; head -c 1 >/dev/null; stdbuf -o0 head -c 9"),
            env=_environment(),
            input=b"abc",
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.stdout == b"ac"
