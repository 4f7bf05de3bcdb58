"""Logs of replicas are kept small from a thread of each worker, so also while Redis or Postgres is away."""

import threading
from pathlib import Path

import structlog

from domain.log_limits import LogLimits
from runtime.file_lock import file_lock
from runtime.process_logs import ProcessLogs

LOOK_SECONDS = 10.0
_log = structlog.get_logger(__name__)


def keep_logs_small(home: Path, limits: LogLimits, until: threading.Event) -> threading.Thread:
    """Look at the logs of the replicas of `home` again and again; of several workers one does."""
    thread = threading.Thread(target=_keep, args=(ProcessLogs(home), limits, until), name="logs", daemon=True)
    thread.start()
    return thread


def _keep(logs: ProcessLogs, limits: LogLimits, until: threading.Event) -> None:
    while not until.wait(LOOK_SECONDS):
        try:
            logs.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with file_lock(logs.folder.parent / ".lock", patience_seconds=0):
                logs.keep_small(limits)
        except TimeoutError:  # another worker looks
            continue
        except OSError as error:
            _log.warning("logs of replicas not kept small", error=str(error))
