"""The page about the tasks that other services send, and the same as JSON Schema."""

from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from pydantic import BaseModel

import domain
from domain.commands.base import QUERIES, Command
from domain.commands.registry import COMMANDS
from domain.installation.contract import WrongInstallationError
from domain.text.errors import RollwayError
from domain.text.validation_errors import meanings
from tools.reference.markdown import page, prose, table
from tools.reference.models import rows_of

MESSAGES: dict[str, type[BaseModel]] = {**COMMANDS, **QUERIES}
HEADS = ("field", "default", "values", "meaning")


def tasks_page() -> str:
    """What docs/reference/tasks.md holds."""
    shared = frozenset(Command.model_fields)
    return page(
        "Tasks for other services",
        "How they are sent, answered and signed: [commands.md](../commands.md). Unknown fields are refused.\n"
        "`make reference` writes the same as JSON Schema into `build/reference/`.",
        "## Every payload\n\n" + table(HEADS, (row.cells for row in rows_of(Command))),
        *(_task(name, message, shared) for name, message in MESSAGES.items()),
        "## Refusals\n\n" + table(("code", "when"), ([f"`{code}`", said] for code, said in codes().items())),
    )


def _task(name: str, message: type[BaseModel], shared: frozenset[str]) -> str:
    """A query is answered with what `status --json` shows, which has no table here."""
    rows = [row.cells for row in rows_of(message, without=shared)]
    parts = [f"## `{name}`\n", prose(message.__doc__), table(HEADS, rows) if rows else ""]
    if issubclass(message, Command):
        answered = [[f"`{row.name}`", row.meaning] for row in rows_of(message.answer)]
        parts.append(table(("in `result`", "meaning"), answered))
    return "\n".join(parts)


def codes() -> dict[str, str]:
    """Every refusal that an answer may name, with its sentence; a process that must not begin answers nobody."""
    for module in walk_packages(domain.__path__, "domain."):
        import_module(module.name)  # a refusal is known by its class, wherever it stands
    import_module("tasks.messaging.signature")
    told = sorted((kind for kind in _kinds(RollwayError) if _is_told(kind)), key=lambda kind: kind.code)
    return {kind.code: " ".join((kind.__doc__ or "").split()) for kind in told}


def _kinds(kind: type[RollwayError]) -> list[type[RollwayError]]:
    return [below for child in kind.__subclasses__() for below in (child, *_kinds(child))]


def _is_told(kind: type[RollwayError]) -> bool:
    return kind.__module__.startswith(("domain.", "tasks.messaging.")) and kind is not WrongInstallationError


def tasks_document() -> dict[str, Any]:
    """JSON Schema of all tasks: {task: {"payload": schema, "result": schema}, ...}, and of every refusal."""
    commands = {name: {"payload": _schema(kind), "result": _schema(kind.answer)} for name, kind in COMMANDS.items()}
    tasks = commands | {name: {"payload": _schema(kind)} for name, kind in QUERIES.items()}
    error = {
        "type": "object",
        "required": ["code", "message", "detail"],
        "properties": {
            "code": {"enum": sorted(codes())},
            "message": {"type": "string"},
            "detail": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }
    return {"tasks": tasks, "refusal": error}


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    for name, said in meanings(model).items():
        schema["properties"][model.model_fields[name].alias or name]["description"] = said
    return schema
