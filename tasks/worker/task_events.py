"""Tells of a task where somebody listens: of a tick nothing, of a refused command that it was.

Of none its arguments. Celery makes three messages of each task for Flower, a fifth of a worker's time.
"""

from collections.abc import Callable
from typing import Any

import celery
from celery.events import EventDispatcher
from celery.worker import request
from celery.worker.strategy import default

from tasks.messaging.flower_notes import is_shown

_REFUSED = repr({"ok": False})[:-1]
"""How the answer begins that `tasks.command_tasks` gives to a refused command."""


class Task(celery.Task):
    """The base of every task of ours."""

    Request = "tasks.worker.task_events:ShownRequest"
    Strategy = "tasks.worker.task_events:take"


class ShownRequest(request.Request):
    """A message that was taken, told of by what its headers show, and never with the arguments themselves."""

    def info(self, **_: object) -> dict[str, Any]:
        """Show the request to those who inspect this worker, such as `celery inspect` and Flower."""
        return dict(super().info(safe=True))

    def send_event(self, type: str, **fields: object) -> None:  # noqa: A002  (Celery's)
        """Show a refused command as REFUSED in Flower; for Celery it succeeded, since it has an answer.

        Nothing is sent while nobody listens; a new listener is noticed with the next heartbeat.
        """
        if not _may_be_heard(self.eventer):
            return
        is_refused = type == "task-succeeded" and str(fields["result"]).startswith(_REFUSED)
        super().send_event("task-refused" if is_refused else type, **fields)


def take(task: celery.Task, app: celery.Celery, consumer: Any) -> Callable[..., object]:  # noqa: ANN401  (Celery's)
    """Take a message of this task, as Celery does, but tell nobody of some.

    That a task was received Celery tells past the request, so whether anybody listens is asked here too.
    """
    untold = type(task)()
    untold.send_events = False
    tell, keep_quiet = default(task, app, consumer), default(untold, app, consumer)

    def strategy(message: Any, *more: object) -> object:  # noqa: ANN401  (Kombu's)
        is_told = is_shown(message.headers) and _may_be_heard(consumer.event_dispatcher)
        return (tell if is_told else keep_quiet)(message, *more)

    return strategy


def _may_be_heard(dispatcher: EventDispatcher | None) -> bool:
    """False where the worker tells nothing at all, too: then there is no producer."""
    producer = dispatcher.producer if dispatcher else None
    return producer is not None and producer.channel.may_be_heard
