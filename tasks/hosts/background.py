"""The chores of a worker, each in a thread of its own, such as keeping logs small."""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import structlog

from domain.installation.settings import LogLimits
from runtime.machine.path_access import file_lock
from runtime.process.process_logs import ProcessLogs

_AFTER_TROUBLE_SECONDS = 1.0
_log = structlog.get_logger(__name__)


def keep_looking(
    look: Callable[[], None], every_seconds: float, until: threading.Event, *, name: str, trouble: str, **facts: str
) -> threading.Thread:
    """Look at once and then every `every_seconds`, however busy the tasks of this worker are.

    An error of a look ends nothing: it is logged as `trouble`, with the `facts`, and the next look may succeed.
    """
    warn = partial(_log.warning, trouble, **facts)
    thread = threading.Thread(target=_keep_looking, args=(look, every_seconds, until, warn), name=name, daemon=True)
    thread.start()
    return thread


def _keep_looking(
    look: Callable[[], None], every_seconds: float, until: threading.Event, warn: Callable[..., object]
) -> None:
    while not until.is_set():
        pause = every_seconds
        try:
            look()
        except Exception as error:  # noqa: BLE001  (whatever is in trouble, Postgres, Redis or a file, may be over soon)
            warn(error=str(error).partition("\n")[0])
            pause = max(pause, _AFTER_TROUBLE_SECONDS)
        until.wait(pause)


LOOK_SECONDS = 10.0


def keep_logs_small(home: Path, limits: LogLimits, until: threading.Event) -> threading.Thread:
    """Keep the logs of the replicas of `home` small; only one of several workers does it."""
    look, trouble = partial(_look, ProcessLogs(home), limits), "logs of replicas not kept small"
    return keep_looking(look, LOOK_SECONDS, until, name="sizes of logs", trouble=trouble)


def _look(logs: ProcessLogs, limits: LogLimits) -> None:
    logs.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(TimeoutError), file_lock(logs.folder.parent / ".lock", patience_seconds=0):  # another worker looks
        logs.keep_small(limits)
