"""The Celery app. Beat and Flower load only this; a worker also loads the tasks and everything they use."""

from importlib import import_module

from celery import Celery
from celery.signals import celeryd_init, setup_logging

from tasks.log import configure_logging
from tasks.schedule import beat_schedule
from tasks.settings import celery_settings

TASK_MODULES = ("tasks.lifecycle", "tasks.route_lifecycle", "tasks.commands")

app = Celery("rollway")
app.add_defaults(lambda: {**celery_settings(), "beat_schedule": beat_schedule()})


@celeryd_init.connect
def _load_tasks(**_: object) -> None:
    """Import the tasks in workers only: it takes more time than the rest of a start.

    Celery swallows what a signal's receiver raises, so this exits: a worker without tasks throws every message away.
    """
    try:
        for module in TASK_MODULES:
            import_module(module)
    except Exception as error:
        raise SystemExit(f"the tasks cannot be loaded: {error!r}") from error


@setup_logging.connect
def _log(loglevel: int | None = None, **_: object) -> None:
    configure_logging(loglevel)
