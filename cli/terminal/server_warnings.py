"""Warnings for a person on standard error: a worker's log lines, and doubts about the Redis in use.

What is imported inside of functions takes a second, which commands that only read can save.
"""

import sys
from collections.abc import MutableMapping
from typing import Any

from cli.terminal.output import printer


def show_notes() -> None:
    """Log as notes for people from now on: without the key and the driver's words."""
    import structlog  # noqa: PLC0415

    structlog.configure(processors=[_only_the_event], logger_factory=_to_stderr)


def look_at_redis() -> None:
    """The warnings about the server of REDIS_URL. Raises UnfitServerError for one too old, and RedisError."""
    from tasks.worker.connections import redis_client  # noqa: PLC0415
    from tasks.worker.owners import doubt_about  # noqa: PLC0415

    if doubt := doubt_about(redis_client()):
        printer(stderr=True).print(f"note: {doubt}", style="yellow")


def _to_stderr(*_: object) -> object:
    """The present standard error: a logger made once would keep that of its first line."""
    import structlog  # noqa: PLC0415

    return structlog.PrintLogger(sys.stderr)


def _only_the_event(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
    return f"note: {event['event']}"
