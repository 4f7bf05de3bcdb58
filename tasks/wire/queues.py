"""The queues, and how Celery is set up; the reasons: docs/decisions/0004-celery-on-redis.md."""

from typing import Any

from kombu.entity import Exchange, Queue

from domain.commands.base import QUERIES
from domain.commands.registry import COMMANDS
from tasks.settings import KEY_PREFIX, TaskSettings

LIFECYCLE_QUEUE = "lifecycle"
ROUTES_QUEUE = "routes"
COMMANDS_QUEUE = "commands"


def celery_settings(given: TaskSettings) -> dict[str, Any]:
    """Celery's configuration: no ETA, no retry, no prefetch. Postgres remembers, the next tick repeats."""
    return {
        "broker_url": given.redis_url,
        "broker_transport": "tasks.worker.transport:Transport",
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
        "task_routes": {task: {"queue": COMMANDS_QUEUE} for task in (*COMMANDS, *QUERIES)},
        "task_acks_late": False,
        "worker_prefetch_multiplier": 1,
        "worker_disable_prefetch": True,
        "worker_hijack_root_logger": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_transport_options": {
            "global_keyprefix": KEY_PREFIX,
            "ack_emulation": False,  # acknowledged before they begin, tasks need no copy of their messages in Redis
            "socket_timeout": 10,
            "socket_connect_timeout": 3,
            "socket_keepalive": True,
            "health_check_interval": 10,
        },
        "result_backend_transport_options": {"global_keyprefix": KEY_PREFIX},
        "enable_utc": True,
        "beat_scheduler": "tasks.worker.beat:MemoryScheduler",
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
