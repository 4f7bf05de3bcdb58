"""The commands as Celery tasks, for services that know only a task's name and its JSON payload."""

from typing import Any

from celery import Task

from db.commands.execute import execute
from db.engine import engine
from domain.commands import COMMANDS
from domain.errors import RollwayError
from domain.messages import parse_command
from tasks.app import app
from tasks.connections import waker


def run_command(task: str, payload: object) -> dict[str, Any]:
    """Carry out a command here and now and wake its handler. Raises the refusals of `domain.errors`.

    Returns {"result": what was done, "repeated": whether an earlier request with this id had done it}.
    """
    done = execute(engine(), parse_command(task, payload))
    waker().after_change([] if done.status is None else [done.status])
    return {"result": done.result, "repeated": done.repeated}


def answer(task: str, payload: object) -> dict[str, Any]:
    """The result: {"ok": true, "result", "repeated"}, or {"ok": false, "error": {"code", "message", "detail"}}."""
    try:
        return {"ok": True, **run_command(task, payload)}
    except RollwayError as refusal:
        return {"ok": False, "error": refusal.as_json()}


def _register(task: str) -> Task:
    def command(payload: dict[str, Any]) -> dict[str, Any]:
        return answer(task, payload)

    command.__doc__ = COMMANDS[task].__doc__
    command.__name__ = task.rpartition(".")[2]
    registered: Task = app.task(name=task, ignore_result=False)(command)
    return registered


TASKS = {task: _register(task) for task in COMMANDS}
