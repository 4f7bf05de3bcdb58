"""What a worker looks after without being asked: again and again, from a thread of its own for each."""

import threading
from collections.abc import Callable
from functools import partial

import structlog

_AFTER_TROUBLE_SECONDS = 1.0
_log = structlog.get_logger(__name__)


def keep_looking(
    look: Callable[[], None], every_seconds: float, until: threading.Event, *, name: str, trouble: str, **facts: str
) -> threading.Thread:
    """Look at once and then every so many seconds, however busy the tasks of this worker are.

    What a look raises ends nothing: it is logged as `trouble`, with the `facts`, and may be over at the next look.
    """
    told = partial(_log.warning, trouble, **facts)
    thread = threading.Thread(target=_keep_looking, args=(look, every_seconds, until, told), name=name, daemon=True)
    thread.start()
    return thread


def _keep_looking(
    look: Callable[[], None], every_seconds: float, until: threading.Event, told: Callable[..., object]
) -> None:
    while not until.is_set():
        pause = every_seconds
        try:
            look()
        except Exception as error:  # noqa: BLE001  (whatever is in trouble, Postgres, Redis or a file, may be over soon)
            told(error=str(error).partition("\n")[0])
            pause = max(pause, _AFTER_TROUBLE_SECONDS)
        until.wait(pause)
