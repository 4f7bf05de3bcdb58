"""Every statement that connections of an engine send, with the plan that Postgres makes for its parameters."""

import sys
from collections.abc import Iterator
from traceback import walk_stack
from typing import Any, ClassVar, Self

import psycopg
from psycopg.sql import SQL, Composable
from sqlalchemy import Engine, event

from db.silence import AnsweredCursor
from tests.tasks.plans.two_years import GROWING

DEAR = 2000.0
"""What a statement may cost in Postgres' own measure: looks by an index at some hundred rows, and no more of them."""

_EXPLAINED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
_PRODUCT = ("db.", "api.", "tasks.", "domain.")


class ExplainingCursor(AnsweredCursor):
    """Puts into `growing` the statements that cost too much or read whole tables, by name, and which tables."""

    growing: ClassVar[dict[str, set[str]]] = {}

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        text = query.as_string(self) if isinstance(query, Composable) else query
        if text.lstrip().startswith(_EXPLAINED):
            found = psycopg.Cursor(self.connection).execute(SQL("EXPLAIN (FORMAT JSON) ") + SQL(text), params)
            ((((explained,)),),) = found.fetchall()
            self._judge(_name_of(text), explained["Plan"])
        return super().execute(query, params, **options)

    def _judge(self, name: str, plan: dict[str, Any]) -> None:
        scanned = {node["Relation Name"] for node in _nodes(plan) if node["Node Type"] == "Seq Scan"} & GROWING
        if name and (scanned or plan["Total Cost"] > DEAR):
            self.growing.setdefault(name, set()).update(scanned)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)


def _name_of(text: str) -> str:
    """The constant of the product that holds it, or the function that sends it and who calls that; empty for a test."""
    for module in [made for path, made in list(sys.modules.items()) if path.startswith("db.")]:
        for name, value in vars(module).items():
            if value is text or (type(value) is dict and any(each is text for each in value.values())):
                return f"{module.__name__}.{name}"
    frames = ((str(frame.f_globals["__name__"]), frame.f_code.co_name) for frame, _ in walk_stack(None))
    functions = [f"{path}.{name}" for path, name in frames if path.startswith(_PRODUCT) and name.isidentifier()]
    return " for ".join(functions[:2])


def explain_what_is_sent(engine: Engine) -> type[ExplainingCursor]:
    """From now on."""

    @event.listens_for(engine, "connect")
    def _explain(connection: psycopg.Connection, _: object) -> None:
        connection.cursor_factory = ExplainingCursor

    engine.dispose()
    return ExplainingCursor
