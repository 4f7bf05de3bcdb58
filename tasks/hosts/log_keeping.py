"""Logs of replicas are kept small from a thread of each worker, so also while Redis or Postgres is away."""

import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

from domain.installation.log_limits import LogLimits
from runtime.machine.file_lock import file_lock
from runtime.process.logs import ProcessLogs
from tasks.hosts.looking import keep_looking

LOOK_SECONDS = 10.0


def keep_logs_small(home: Path, limits: LogLimits, until: threading.Event) -> threading.Thread:
    """Look at the logs of the replicas of `home` again and again; of several workers one does."""
    look, trouble = partial(_look, ProcessLogs(home), limits), "logs of replicas not kept small"
    return keep_looking(look, LOOK_SECONDS, until, name="sizes of logs", trouble=trouble)


def _look(logs: ProcessLogs, limits: LogLimits) -> None:
    logs.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(TimeoutError), file_lock(logs.folder.parent / ".lock", patience_seconds=0):  # another worker looks
        logs.keep_small(limits)
