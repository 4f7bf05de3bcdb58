"""Every statement that connections of an engine send, with the plan that Postgres makes for its parameters."""

import sys
from collections.abc import Iterator
from traceback import walk_stack
from typing import Any, ClassVar, Self

import psycopg
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer
from psycopg.sql import SQL, Composable
from sqlalchemy import Engine, event

from db.unreachable import AnsweredCursor
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
            self._judge(_name_of(text), self._plan(text, params))
        return super().execute(query, params, **options)

    def _plan(self, text: str, params: Any) -> dict[str, Any]:
        """As Postgres makes it here: for these values, or once for all where the session asks for that."""
        plain = psycopg.Cursor(self.connection)
        ((is_for_all,),) = plain.execute("SELECT current_setting('plan_cache_mode') = 'force_generic_plan'").fetchall()
        if not (is_for_all and params):
            ((((explained,)),),) = plain.execute(SQL("EXPLAIN (FORMAT JSON) ") + SQL(text), params).fetchall()
            return dict(explained["Plan"])
        sent = PostgresQuery(Transformer(self.connection))
        sent.convert(text, params)
        types = plain.execute(
            "SELECT CASE oid WHEN 0 THEN 'unknown' ELSE format_type(oid, NULL) END FROM unnest(%s::oid[]) oid",
            (list(sent.types),),
        ).fetchall()
        names, values = (", ".join(each) for each in zip(*((name, "NULL") for (name,) in types), strict=True))
        plain.execute(b"PREPARE explained (%s) AS %s" % (names.encode(), sent.query), prepare=False)
        ((((explained,)),),) = plain.execute(
            f"EXPLAIN (FORMAT JSON) EXECUTE explained ({values})", prepare=False
        ).fetchall()
        plain.execute("DEALLOCATE explained", prepare=False)
        return dict(explained["Plan"])

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
