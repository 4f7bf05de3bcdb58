"""The Celery app. Beat and Flower load only this; a worker also loads the tasks and everything they use."""

import sys
from collections.abc import Mapping
from importlib import import_module

from celery import Celery, Task
from celery.signals import celeryd_init, setup_logging, task_postrun, task_prerun, worker_shutdown
from structlog.contextvars import bind_contextvars, unbind_contextvars

from domain.installation.contract import WRONG_INSTALLATION
from domain.text.errors import InvalidInputError
from runtime.machine.watchdog import keep_alive
from tasks.seen.log import configure_logging
from tasks.seen.tracing import spans
from tasks.settings import log_limits, retention, settings
from tasks.wire.keys import command_keys, webhook_targets
from tasks.wire.queues import celery_settings
from tasks.wire.threads import WakeWhenFree

TASK_MODULES = ("tasks.lifecycle", "tasks.route_lifecycle", "tasks.asked.commands", "tasks.retention")


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
    if task and (sent := spans()):
        of = task.request
        sent.begin_task(task_id, of.get("shadow"), of.get("kwargsrepr") or "", of.get("traceparent"))


@task_postrun.connect
def _forget_task(task_id: str, retval: object = None, state: str | None = None, **_: object) -> None:
    unbind_contextvars("task_id")
    if sent := spans():
        sent.end_task(task_id, retval, failed=state == "FAILURE")


@worker_shutdown.connect
def _send_last_spans(**_: object) -> None:
    if sent := spans():
        sent.close()
