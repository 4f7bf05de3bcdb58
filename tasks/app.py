"""The Celery app. Beat and Flower load only this; a worker also loads the tasks and everything they use.

A worker's loop is woken when one of its threads becomes free. With `worker_disable_prefetch` it takes no message while
every thread has a task. It looks again when it is woken, and Celery 5.7.0 wakes it when a task begins, but not when one
ends, unless it has a task event to send just then. Without task events (`-E`) each thread would be idle until a timer
comes round, half a second on average.
"""

import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any, TypeVar

from celery import Celery, Task, bootsteps
from celery.concurrency.thread import TaskPool
from celery.signals import celeryd_init, setup_logging, task_postrun, task_prerun, worker_shutdown
from structlog.contextvars import bind_contextvars, unbind_contextvars

from domain.installation.contract import WRONG_INSTALLATION
from domain.text.errors import InvalidInputError
from runtime.machine.watchdog import keep_alive
from tasks.messaging.credentials import command_keys, webhook_targets
from tasks.messaging.queues import celery_settings
from tasks.task_settings import log_limits, retention, settings
from tasks.telemetry.log import configure_logging
from tasks.telemetry.tracing import spans

T = TypeVar("T")


class _WakingExecutor(ThreadPoolExecutor):
    """Calls `wake` whenever a thread has done its task and everything that Celery does after it."""

    def __init__(self, threads: int, wake: Callable[[], object]) -> None:
        super().__init__(max_workers=threads)
        self._wake = wake

    def submit(self, work: Callable[..., T], /, *arguments: object, **more: object) -> Future[T]:
        future = super().submit(work, *arguments, **more)
        future.add_done_callback(lambda _: self._wake())
        return future


class WakeWhenFree(bootsteps.Step):
    """Gives the worker's pool of threads that executor, before it has a thread."""

    requires = ("celery.worker.components:Hub", "celery.worker.components:Pool")

    def create(self, worker: Any) -> None:  # noqa: ANN401  (Celery's)
        """Called once, when the worker is put together."""
        if worker.hub is not None and isinstance(worker.pool, TaskPool):
            wake = worker.hub.call_soon
            worker.pool.executor = _WakingExecutor(worker.pool.limit, lambda: wake(_look_again))


def _look_again() -> None:
    """Nothing: the loop only has to turn once to see that a thread is free."""


TASK_MODULES = ("tasks.lifecycle", "tasks.route_lifecycle", "tasks.command_tasks", "tasks.housekeeping")


def _defaults() -> Mapping[str, object]:
    """Celery's settings. Workers, beat and Flower end with one sentence where a variable is wrong."""
    try:
        return celery_settings(settings())
    except InvalidInputError as error:
        print(f"Rollway does not begin: {error.message}", file=sys.stderr)  # noqa: T201  (logging is not set up yet)
        raise SystemExit(WRONG_INSTALLATION) from None


app = Celery("rollway", task_cls="tasks.worker.task_events:Task")
app.add_defaults(_defaults)
app.steps["worker"].add(WakeWhenFree)


@celeryd_init.connect
def _load_tasks(**_: object) -> None:
    """Import the tasks in workers only: it takes more time than the rest of a start. Look at what they read later too.

    Celery swallows what a signal's receiver raises, so this exits: a worker without tasks throws every message away.
    """
    try:
        command_keys()
        retention()
        log_limits()
        webhook_targets()
        for module in TASK_MODULES:
            import_module(module)
        keep_alive()
    except InvalidInputError as error:
        raise SystemExit(error.message) from None
    except Exception as error:
        raise SystemExit(f"the tasks cannot be loaded: {error!r}") from error


@setup_logging.connect
def _log(loglevel: int | None = None, **_: object) -> None:
    configure_logging(loglevel)


@task_prerun.connect
def _name_task(task_id: str, task: Task | None = None, **_: object) -> None:
    """Each log line of a task has its id; it has a span where traces are sent."""
    bind_contextvars(task_id=task_id)
    if task and (tracer := spans()):
        of = task.request
        tracer.begin_task(task_id, of.get("shadow"), of.get("kwargsrepr") or "", of.get("traceparent"))


@task_postrun.connect
def _forget_task(task_id: str, retval: object = None, state: str | None = None, **_: object) -> None:
    unbind_contextvars("task_id")
    if tracer := spans():
        tracer.end_task(task_id, retval, failed=state == "FAILURE")


@worker_shutdown.connect
def _send_last_spans(**_: object) -> None:
    if tracer := spans():
        tracer.close()
