"""What beat sends, and how often. The schedule is in the code: nothing is kept in a file or written now and then."""

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule
from celery.signals import beat_init
from redis.exceptions import RedisError

from domain.handlers.dispatch import HANDLERS
from domain.installation.contract import UnfitServerError, WrongInstallationError, check_redis
from domain.model.lifecycle_events import ROUTE_CADENCES, DoDeploymentLifecycleEvent, RouteLifecycleType
from runtime.machine.watchdog import tell
from tasks.messaging.queues import (
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
from tasks.task_settings import settings
from tasks.telemetry.metrics_server import show_metrics
from tasks.telemetry.task_metrics import TICKS_SKIPPED
from tasks.worker.connections import redis_client, waker
from tasks.worker.garbage import collect_seldom
from tasks.worker.owners import doubt_about, owner_of_home, owner_of_redis, refuse_to_begin


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


_log = structlog.get_logger(__name__)
_BEGAN = datetime.now(UTC) - timedelta(seconds=time.monotonic())


def _steady_now() -> datetime:
    """A time that setting the machine's clock does not change: set back by an hour, no tick would come for an hour."""
    return _BEGAN + timedelta(seconds=time.monotonic())


class MemoryScheduler(Scheduler):
    """Needs half the processor time of Celery's own, which wakes up 10 ms before an entry is due and then spins."""

    def setup_schedule(self) -> None:
        """Take the app's schedule without Celery's own entries: results expire in Redis by themselves."""
        _refuse_wrong_redis()
        entries = self.app.conf.beat_schedule or beat_schedule()
        self.merge_inplace({name: {**entry, "schedule": _steady(entry["schedule"])} for name, entry in entries.items()})

    def adjust(self, n: float | None, drift: float = 0.001) -> float | None:
        """The seconds to sleep: until a millisecond after the next entry is due."""
        return n + drift if n and n > 0 else n

    def apply_entry(self, entry: ScheduleEntry, producer: object = None) -> None:
        """Send the tick, unless its queue is so full that nobody seems to read it.

        At rest the alarm is enough: it looks each second, with one look for all, for what short ticks look for.
        """
        tell("WATCHDOG=1")
        with suppress(RedisError):  # sending tells that Redis is away
            if entry.task == DO_IF_NEEDED_TASK and waker().is_at_rest():
                return
            if not waker().has_room(entry.options["queue"]):
                TICKS_SKIPPED.inc()
                return
        try:  # as Celery's own does it, which writes a line at level info for each: 38 MB a day that nobody reads
            self.apply_async(entry, producer=producer, advance=False)
            _log.debug("sent", entry=entry.name, task=entry.task)
        except Exception as error:  # noqa: BLE001  (whatever it is, the next tick may go through)
            _log.warning("tick not sent", entry=entry.name, task=entry.task, error=str(error))


@beat_init.connect
def _collect_seldom(**_: object) -> None:
    collect_seldom()


@beat_init.connect
def _show_metrics(**_: object) -> None:
    show_metrics(f"beat@{settings().host}")


def _refuse_wrong_redis() -> None:
    """Beat has no database: what it can compare is its home, where there is one, with Redis."""
    try:
        with suppress(RedisError):
            if doubt := doubt_about(redis_client()):
                _log.warning(doubt)
            check_redis(owner_of_home(settings().home), owner_of_redis(redis_client()))
    except (WrongInstallationError, UnfitServerError) as error:
        refuse_to_begin(error.message)


def _steady(seconds: float) -> schedule:
    return schedule(timedelta(seconds=seconds), nowfun=_steady_now)
