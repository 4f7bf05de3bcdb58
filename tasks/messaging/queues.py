"""The queues, and how Celery is set up; the reasons: docs/decisions/0004-celery-on-redis.md."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kombu.entity import Exchange, Queue
from kombu.transport import TRANSPORT_ALIASES

from tasks.task_settings import KEY_PREFIX, TaskSettings

LIFECYCLE_QUEUE = "lifecycle"
ROUTES_QUEUE = "routes"
COMMANDS_QUEUE = "commands"
# By its name, since a URL that names a Unix socket names its transport too, and Celery then asks for no other.
TRANSPORT_ALIASES["redis"] = TRANSPORT_ALIASES["rediss"] = "tasks.worker.transport:Transport"
SHARED_QUEUES = (LIFECYCLE_QUEUE, ROUTES_QUEUE, COMMANDS_QUEUE)
"""What is for any worker of the fleet."""


def celery_settings(environment: TaskSettings) -> dict[str, Any]:
    """Celery's configuration: no ETA, no retry, no prefetch. Postgres remembers, the next tick repeats."""
    return {
        "broker_url": _as_celery_writes_it(environment.redis_url),
        "result_backend": _as_celery_writes_it(environment.redis_url),
        "result_expires": 600,
        "task_ignore_result": True,
        "task_serializer": "json",
        "result_serializer": "json",
        "accept_content": ["json"],
        "task_default_queue": LIFECYCLE_QUEUE,
        "task_create_missing_queues": False,
        "task_queues": [queue(name) for name in (*SHARED_QUEUES, host_queue(environment.host))],
        "task_routes": (route,),
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


def _as_celery_writes_it(url: str) -> str:
    """unix://:password@/path?db=0 -> redis+socket://:password@/path?virtual_host=0; others as they are."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    database = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={database}"


def route(name: str, args: object, kwargs: object, options: Mapping[str, Any], **_: object) -> Mapping[str, str] | None:  # noqa: ARG001 -- Celery's
    """The queue of a command whose sender names none. Beat and Flower send no commands, and load none."""
    if options.get("queue"):
        return None
    from tasks.messaging.task_names import ANSWERED  # noqa: PLC0415

    return {"queue": COMMANDS_QUEUE} if name in ANSWERED else None


def host_queue(host: str) -> str:
    """The name of the queue that only workers on this host listen to."""
    return f"host.{host}"


def takes_tasks(name: str) -> bool:
    """Whether workers take tasks from the queue of that name; Celery has others, such as those for answers."""
    return name in SHARED_QUEUES or name.startswith(host_queue(""))


def queue(name: str) -> Queue:
    """A queue with an exchange and a key of its own: on a shared default key every queue would get every message."""
    return Queue(name, Exchange(name), routing_key=name)  # type: ignore[no-untyped-call]


DO_TASK = "rollway.do_deployment_lifecycle"
DO_IF_NEEDED_TASK = "rollway.do_deployment_lifecycle_if_needed"
DO_ROUTE_TASK = "rollway.do_route_lifecycle"
ALARM_TASK = "rollway.wake_what_is_due"
ALARM_SECONDS = 1.0
AUDIT_TASK = "rollway.audit"
AUDIT_SECONDS = 60.0
RETENTION_TASK = "rollway.cut_the_past"
RETENTION_SECONDS = 60.0
