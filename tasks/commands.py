"""The commands as Celery tasks, for services that know only a task's name and its JSON payload."""

from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from celery import Task
from sqlalchemy.exc import DBAPIError

from db.commands.execute import execute
from db.engine import database_now, engine, in_transaction
from domain.commands import COMMANDS
from domain.errors import InvalidInputError, RollwayError, TooLargeError, UnavailableError
from domain.messages import parse_command
from domain.signature import SIGNED_FIELDS, payload_of, proven_payload
from tasks.app import app
from tasks.connections import waker
from tasks.keys import command_keys

PATIENCE_SECONDS = 30.0
"""How long a command waits for Postgres: longer than a restart takes, and than a sender likes to wait."""


def run_command(task: str, payload: object, patience_seconds: float = 0) -> dict[str, Any]:
    """Carry out a command here and now and wake its handler. Raises the refusals of `domain.errors`.

    Returns {"result": what was done, "repeated": whether an earlier request with this id had done it}.
    """
    done = execute(engine(), parse_command(task, payload), patience_seconds)
    waker().after_change([] if done.status is None else [done.status])
    return {"result": done.result, "repeated": done.repeated}


def answer(task: str, payload: object, patience_seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
    """The result: {"ok": true, "result", "repeated"}, or {"ok": false, "error": {"code", "message", "detail"}}."""
    return _told(lambda: run_command(task, payload, patience_seconds), patience_seconds)


def answer_message(
    task: str, given: Mapping[str, object], patience_seconds: float = PATIENCE_SECONDS
) -> dict[str, Any]:
    """The same for the arguments of a message: payload alone, or with sender, sent_at and signature.

    In place of a message that did not fit comes why it did not, by the code of its refusal.
    """
    return _told(
        lambda: run_command(task, _believed_payload(task, given, patience_seconds), patience_seconds), patience_seconds
    )


def _told(work: Callable[[], dict[str, Any]], patience_seconds: float) -> dict[str, Any]:
    try:
        return {"ok": True, **work()}
    except (psycopg.OperationalError, DBAPIError) as error:
        if isinstance(error, DBAPIError) and not isinstance(error.orig, psycopg.OperationalError):
            raise
        message = (
            f"PostgreSQL did not answer for {patience_seconds:g} s; send the command again, "
            "and with the same request_id nothing is done twice"
        )
        return {"ok": False, "error": UnavailableError(message).as_json()}
    except RollwayError as refusal:
        return {"ok": False, "error": refusal.as_json()}


def _believed_payload(task: str, given: Mapping[str, object], patience_seconds: float) -> object:
    """What the sender wants. Without keys, whoever reaches the broker is believed."""
    match dict(given):
        case {"too_large": why}:
            raise TooLargeError(str(why), field="message")
        case {"invalid_input": why}:
            raise InvalidInputError(str(why), field="message")
    if set(given) not in ({"payload"}, SIGNED_FIELDS):
        right = "payload alone, or payload, sender, sent_at and signature"
        raise InvalidInputError(f"the arguments must be {right}, not {', '.join(given) or 'none'}", field="payload")
    keys = command_keys()
    if keys is not None:
        now = in_transaction(engine(), database_now, patience_seconds)
        return proven_payload(task, given, keys, now)
    return payload_of(str(given["payload"])) if "signature" in given else given["payload"]


def _register(task: str) -> Task:
    def command(*arguments: object, **named: object) -> dict[str, Any]:
        numbered = {f"argument {number}": value for number, value in enumerate(arguments, start=1)}
        alone = len(arguments) == 1 and not named
        return answer_message(task, {"payload": arguments[0]} if alone else {**numbered, **named})

    command.__doc__ = COMMANDS[task].__doc__
    command.__name__ = task.rpartition(".")[2]
    registered: Task = app.task(name=task, ignore_result=False)(command)
    return registered


TASKS = {task: _register(task) for task in COMMANDS}
