"""What beat sends, and how often."""

from typing import Any

from domain.handlers.dispatch import HANDLERS
from domain.model.lifecycle_events import DoDeploymentLifecycleEvent
from domain.replicas.route_events import ROUTE_CADENCES, RouteLifecycleType
from tasks.wire.queues import (
    ALARM_SECONDS,
    ALARM_TASK,
    AUDIT_SECONDS,
    AUDIT_TASK,
    DO_IF_NEEDED_TASK,
    DO_ROUTE_TASK,
    DO_TASK,
    LIFECYCLE_QUEUE,
    RETENTION_SECONDS,
    RETENTION_TASK,
    ROUTES_QUEUE,
)


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
