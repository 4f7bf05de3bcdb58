"""The Celery app. Beat and Flower load only this; a worker also loads the tasks and everything they use."""

from importlib import import_module

from celery import Celery
from celery.signals import celeryd_init, setup_logging, task_postrun, task_prerun
from structlog.contextvars import bind_contextvars, unbind_contextvars

from domain.errors import InvalidInputError
from tasks.keys import command_keys
from tasks.log import configure_logging
from tasks.schedule import beat_schedule
from tasks.settings import celery_settings, settings
from tasks.threads import WakeWhenFree

TASK_MODULES = ("tasks.lifecycle", "tasks.route_lifecycle", "tasks.commands")

app = Celery("rollway")
app.add_defaults(lambda: {**celery_settings(settings()), "beat_schedule": beat_schedule()})
app.steps["worker"].add(WakeWhenFree)


@celeryd_init.connect
def _load_tasks(**_: object) -> None:
    """Import the tasks in workers only: it takes more time than the rest of a start. Look at the keys of senders too.

    Celery swallows what a signal's receiver raises, so this exits: a worker without tasks throws every message away.
    """
    try:
        command_keys()
        for module in TASK_MODULES:
            import_module(module)
    except InvalidInputError as error:
        raise SystemExit(error.message) from None
    except Exception as error:
        raise SystemExit(f"the tasks cannot be loaded: {error!r}") from error


@setup_logging.connect
def _log(loglevel: int | None = None, **_: object) -> None:
    configure_logging(loglevel)


@task_prerun.connect
def _name_task(task_id: str, **_: object) -> None:
    """Each log line of a task has its id."""
    bind_contextvars(task_id=task_id)


@task_postrun.connect
def _forget_task(**_: object) -> None:
    unbind_contextvars("task_id")
