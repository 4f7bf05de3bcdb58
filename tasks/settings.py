"""How Celery and Redis are set up, read from the environment; the reasons: docs/decisions/0004-celery-on-redis.md."""

import os
import re
import socket
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from kombu.entity import Exchange, Queue
from pydantic import AfterValidator, BeforeValidator, Field

from domain.commands import COMMANDS
from domain.replicas.placement import EXTERNAL
from domain.settings import Settings

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


def _redis_url(raw: str) -> str:
    parts = urlsplit(raw)
    if parts.scheme not in ("redis", "rediss") or parts.port == 0:  # reading the port checks it
        raise ValueError(raw)
    if parts.scheme == "rediss" and "ssl_cert_reqs" not in parse_qs(parts.query):
        return f"{raw}{'&' if parts.query else '?'}ssl_cert_reqs=required"  # Celery wants to be told
    return raw


def _absolute(raw: Path) -> Path:
    if not raw.is_absolute():
        raise ValueError(raw)
    return raw


def _host_name(raw: str) -> str:
    if not _HOST_NAME.fullmatch(raw) or raw == EXTERNAL:
        raise ValueError(raw)
    return raw


def _names(raw: object) -> object:
    return tuple(name for part in raw.split(",") if (name := part.strip())) if isinstance(raw, str) else raw


_NAMES = "names, separated by commas,"
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


def _seconds(variable: str, default: float) -> float:
    right = f"a number of seconds from 1 to {_MAX_SECONDS}"
    field: float = Field(default, ge=1, le=_MAX_SECONDS, validation_alias=variable, description=right)
    return field


class TaskSettings(Settings):
    """`slots`: workers that may share one handler. `chunk`: deployments for each transaction.

    `lock_seconds`: life of a lock whose worker is gone. `work_seconds`: how long one task goes on claiming chunks.
    `home`: where replicas keep their records and logs. `host`: the name under which this machine runs replicas, which
    proxies reach at `host_address`. `host_silence_seconds`: after so long without a sign of life a host is down.
    `drain_deadline_seconds`: how long a replica that leaves waits for proxies to acknowledge it. `replica_env`: names
    of this environment that replica processes get too; `replica_users`: as whom they may run. `docker_volumes` and
    `docker_host_network`: what containers may reach of the engine's host. `command_keys`: a file with the key of each
    sender; with it, commands must be signed.
    """

    redis_url: Annotated[str, AfterValidator(_redis_url)] = Field(
        validation_alias="REDIS_URL", description="redis://:password@host:port/0, or rediss://...", repr=False
    )
    home: Annotated[Path, AfterValidator(Path.absolute)] = Field(
        Path(".rollway"), validation_alias="ROLLWAY_HOME", validate_default=True
    )
    host: Annotated[str, AfterValidator(_host_name)] = Field(
        default_factory=socket.gethostname,
        validate_default=True,
        validation_alias="ROLLWAY_HOST",
        description=f"letters, digits, '-', '_' and '.', 63 at most, and not {EXTERNAL!r}",
    )
    host_address: str = Field("127.0.0.1", validation_alias="ROLLWAY_HOST_ADDRESS")
    host_silence_seconds: float = _seconds("ROLLWAY_HOST_SILENCE_SECONDS", 15)
    drain_deadline_seconds: float = _seconds("ROLLWAY_DRAIN_DEADLINE_SECONDS", 60)
    replica_env: Names = Field((), validation_alias="ROLLWAY_REPLICA_ENV", description=f"{_NAMES} of variables")
    replica_users: Names = Field((), validation_alias="ROLLWAY_REPLICA_USERS", description=f"{_NAMES} of users")
    docker_volumes: Names = Field(
        (), validation_alias="ROLLWAY_DOCKER_VOLUMES", description=f"{_NAMES} of folders and volumes"
    )
    docker_host_network: bool = Field(
        default=False, validation_alias="ROLLWAY_DOCKER_HOST_NETWORK", description="on or off"
    )
    command_keys: Annotated[Path, AfterValidator(_absolute)] | None = Field(
        None, validation_alias="ROLLWAY_COMMAND_KEYS", description="the absolute path of a file of keys"
    )
    slots: int = Field(
        1, ge=1, le=MOST_SLOTS, validation_alias="ROLLWAY_SLOTS", description=f"a number from 1 to {MOST_SLOTS}"
    )
    chunk: int = 250
    lock_seconds: float = 5.0
    work_seconds: float = 10.0


@cache
def settings() -> TaskSettings:
    """Those of this process, read from its environment at first use. Raises InvalidInputError."""
    return TaskSettings.from_environment(os.environ)


def celery_settings(given: TaskSettings) -> dict[str, Any]:
    """Celery's configuration: no ETA, no retry, no prefetch. Postgres remembers, the next tick repeats."""
    return {
        "broker_url": given.redis_url,
        "broker_transport": "tasks.transport:Transport",
        "result_backend": given.redis_url,
        "result_expires": 600,
        "task_ignore_result": True,
        "task_serializer": "json",
        "result_serializer": "json",
        "accept_content": ["json"],
        "task_default_queue": LIFECYCLE_QUEUE,
        "task_create_missing_queues": False,
        "task_queues": [
            queue(name) for name in (LIFECYCLE_QUEUE, ROUTES_QUEUE, COMMANDS_QUEUE, host_queue(given.host))
        ],
        "task_routes": {task: {"queue": COMMANDS_QUEUE} for task in COMMANDS},
        "task_acks_late": False,
        "worker_prefetch_multiplier": 1,
        "worker_disable_prefetch": True,
        "worker_hijack_root_logger": False,
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


def takes_tasks(name: str) -> bool:
    """Whether workers take tasks from the queue of that name; Celery has others, such as those for answers."""
    return name in (LIFECYCLE_QUEUE, ROUTES_QUEUE, COMMANDS_QUEUE) or name.startswith(host_queue(""))


def queue(name: str) -> Queue:
    """With an exchange and a key of its own: on a shared default key every queue would get every message."""
    return Queue(name, Exchange(name), routing_key=name)  # type: ignore[no-untyped-call]
