"""The queues, beat's schedule, and how Celery is set up; the reasons: docs/decisions/0004-celery-on-redis.md."""

from typing import Any

from kombu.entity import Exchange, Queue

from domain.commands.base import QUERIES
from domain.commands.registry import COMMANDS
from domain.handlers import HANDLERS
from domain.model.events import DoDeploymentLifecycleEvent
from domain.replicas.events import ROUTE_CADENCES, RouteLifecycleType
from tasks.settings import KEY_PREFIX, TaskSettings

LIFECYCLE_QUEUE = "lifecycle"
ROUTES_QUEUE = "routes"
COMMANDS_QUEUE = "commands"
SHARED_QUEUES = (LIFECYCLE_QUEUE, ROUTES_QUEUE, COMMANDS_QUEUE)
"""What is for any worker of the fleet."""


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
        "task_queues": [queue(name) for name in (*SHARED_QUEUES, host_queue(given.host))],
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
    return name in SHARED_QUEUES or name.startswith(host_queue(""))


def queue(name: str) -> Queue:
    """With an exchange and a key of its own: on a shared default key every queue would get every message."""
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


def beat_schedule() -> dict[str, dict[str, Any]]:
    """Two entries for each handler, the alarm, the sweep, the audit and the cut. A tick counts once in its interval."""
    entries: dict[str, dict[str, Any]] = {}
    for event, handler in HANDLERS.items():
        if handler.cadence.short is not None:
            entries[f"{event} if needed"] = _entry(DO_IF_NEEDED_TASK, event, handler.cadence.short)
        entries[str(event)] = _entry(DO_TASK, event, handler.cadence.long)
    sweep, seconds = RouteLifecycleType.SWEEP, ROUTE_CADENCES[RouteLifecycleType.SWEEP]
    arguments = {"route_lifecycle_type": sweep.value, "interval": seconds}
    entries[f"routes/{sweep}"] = _tick(DO_ROUTE_TASK, arguments, seconds, ROUTES_QUEUE)
    entries["alarm"] = _tick(ALARM_TASK, {"interval": ALARM_SECONDS}, ALARM_SECONDS, LIFECYCLE_QUEUE)
    entries["audit"] = _tick(AUDIT_TASK, {"interval": AUDIT_SECONDS}, AUDIT_SECONDS, LIFECYCLE_QUEUE)
    entries["retention"] = _tick(RETENTION_TASK, {"interval": RETENTION_SECONDS}, RETENTION_SECONDS, LIFECYCLE_QUEUE)
    return entries


def _entry(task: str, event: DoDeploymentLifecycleEvent, seconds: float) -> dict[str, Any]:
    sub_step = event.sub_step.value if event.sub_step else None
    arguments = {"lifecycle_type": event.lifecycle_type.value, "sub_step": sub_step, "interval": seconds}
    return _tick(task, arguments, seconds, LIFECYCLE_QUEUE)


def _tick(task: str, arguments: dict[str, Any], seconds: float, queue: str) -> dict[str, Any]:
    return {"task": task, "schedule": seconds, "kwargs": arguments, "options": {"queue": queue, "ignore_result": True}}
