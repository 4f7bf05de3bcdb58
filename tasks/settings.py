"""How Celery and Redis are set up, read from the environment; the reasons: docs/decisions/0004-celery-on-redis.md."""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from kombu.entity import Exchange, Queue

from domain.commands import COMMANDS
from domain.errors import InvalidInputError
from domain.replicas.placement import EXTERNAL

LIFECYCLE_QUEUE = "lifecycle"
ROUTES_QUEUE = "routes"
COMMANDS_QUEUE = "commands"
KEY_PREFIX = "rollway:"
TRAFFIC_CHANNEL = f"{KEY_PREFIX}traffic"
"""Redis' channel for "what proxies should know may have changed"."""
MOST_SLOTS = 64
"""Workers that may share one handler."""
_MAX_SECONDS = 86_400
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """`slots`: workers that may share one handler. `chunk`: deployments for each transaction.

    `lock_seconds`: life of a lock whose worker is gone. `work_seconds`: how long one task goes on claiming chunks.
    `home`: where replicas keep their records and logs. `host`: the name under which this machine runs replicas, which
    proxies reach at `host_address`. `host_silence_seconds`: after so long without a sign of life a host is down.
    `drain_deadline_seconds`: how long a replica that leaves waits for proxies to acknowledge it.
    """

    redis_url: str
    home: Path
    host: str
    host_address: str = "127.0.0.1"
    host_silence_seconds: float = 15.0
    drain_deadline_seconds: float = 60.0
    slots: int = 1
    chunk: int = 250
    lock_seconds: float = 5.0
    work_seconds: float = 10.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """From REDIS_URL and the ROLLWAY_ variables. Raises InvalidInputError naming the variable."""
        given = os.environ if environment is None else environment
        return cls(
            redis_url=_redis_url(given.get("REDIS_URL", "")),
            home=Path(given.get("ROLLWAY_HOME") or ".rollway").absolute(),
            host=_host(given.get("ROLLWAY_HOST") or socket.gethostname()),
            host_address=given.get("ROLLWAY_HOST_ADDRESS") or "127.0.0.1",
            host_silence_seconds=_seconds(given, "ROLLWAY_HOST_SILENCE_SECONDS", 15.0),
            drain_deadline_seconds=_seconds(given, "ROLLWAY_DRAIN_DEADLINE_SECONDS", 60.0),
            slots=_slots(given.get("ROLLWAY_SLOTS") or "1"),
        )


def celery_settings(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Celery's configuration: no ETA, no retry, no prefetch. Postgres remembers, the next tick repeats."""
    settings = TaskSettings.from_environment(environment)
    return {
        "broker_url": settings.redis_url,
        "broker_transport": "tasks.transport:Transport",
        "result_backend": settings.redis_url,
        "result_expires": 600,
        "task_ignore_result": True,
        "task_serializer": "json",
        "result_serializer": "json",
        "accept_content": ["json"],
        "task_default_queue": LIFECYCLE_QUEUE,
        "task_create_missing_queues": False,
        "task_queues": [
            queue(name) for name in (LIFECYCLE_QUEUE, ROUTES_QUEUE, COMMANDS_QUEUE, host_queue(settings.host))
        ],
        "task_routes": {task: {"queue": COMMANDS_QUEUE} for task in COMMANDS},
        "task_acks_late": False,
        "worker_prefetch_multiplier": 1,
        "worker_disable_prefetch": True,
        "worker_hijack_root_logger": False,
        "worker_send_task_events": True,
        "task_send_sent_event": True,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_transport_options": {
            "global_keyprefix": KEY_PREFIX,
            "socket_timeout": 10,
            "socket_connect_timeout": 3,
            "socket_keepalive": True,
            "health_check_interval": 10,
        },
        "result_backend_transport_options": {"global_keyprefix": KEY_PREFIX},
        "enable_utc": True,
        "beat_scheduler": "tasks.beat:MemoryScheduler",
        "beat_max_loop_interval": 1,
    }


def host_queue(host: str) -> str:
    """The name of the queue that only workers on this host listen to."""
    return f"host.{host}"


def queue(name: str) -> Queue:
    """With an exchange and a key of its own: on a shared default key every queue would get every message."""
    return Queue(name, Exchange(name), routing_key=name)  # type: ignore[no-untyped-call]


def _redis_url(raw: str) -> str:
    if not raw:
        raise InvalidInputError(
            "REDIS_URL is not set; it is redis://:password@host:port/0, or run 'rollway up'", field="REDIS_URL"
        )
    try:
        parts = urlsplit(raw)
        readable = parts.scheme in ("redis", "rediss") and parts.port != 0  # reading the port checks it
    except ValueError:
        readable = False
    if not readable:
        raise InvalidInputError("REDIS_URL must be redis://:password@host:port/0 or rediss://...", field="REDIS_URL")
    return raw


def _host(raw: str) -> str:
    if _HOST_NAME.fullmatch(raw) and raw != EXTERNAL:
        return raw
    raise InvalidInputError(
        f"ROLLWAY_HOST must be letters, digits, '-', '_' and '.', 63 at most, and not {EXTERNAL!r}; it is {raw!r}",
        field="ROLLWAY_HOST",
    )


def _seconds(given: Mapping[str, str], name: str, default: float) -> float:
    raw = given.get(name) or str(default)
    try:
        seconds = float(raw)
    except ValueError:
        seconds = 0.0
    if 1 <= seconds <= _MAX_SECONDS:
        return seconds
    raise InvalidInputError(f"{name} must be a number of seconds from 1 to {_MAX_SECONDS}, not {raw!r}", field=name)


def _slots(raw: str) -> int:
    if raw.isascii() and raw.isdigit() and 1 <= int(raw) <= MOST_SLOTS:
        return int(raw)
    raise InvalidInputError(
        f"ROLLWAY_SLOTS must be a number from 1 to {MOST_SLOTS}, not {raw!r}", field="ROLLWAY_SLOTS"
    )
