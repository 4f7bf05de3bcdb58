"""`rollway doctor`: asks every question, and prints the findings; with --sizes also the sizes of the tables."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.client import database_errors, find_servers
from cli.options import AsJson
from cli.terminal.exits import ExitCode
from cli.terminal.output import print_json, printer

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from cli.doctor.checks import DoctorQuestion, Findings, Tables


def doctor(
    *,
    with_sizes: Annotated[
        bool,
        typer.Option("--sizes", help="Also show how big each table is, and how many of its rows will be cut next."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look for states that should be impossible, check the chains of receipts, and replay every recorded decision.

    The schema is held against the migrations too, and hosts, replicas, clocks, events and revisions are looked at.
    Changes nothing. Exit code 1 when something was found. Messages that did not fit, which workers have put aside, and
    events that were given up are shown too: their cause is elsewhere, so they are no fault here. So are rollouts that
    have been open for a month, a cut that is late, and revisions whose name may not be of their content. What is found
    comes with the command that mends it, or explains more. What --sizes says will be cut is by the settings of this
    shell.
    """
    find_servers()
    with database_errors():
        answers, tables = _examine(with_sizes=with_sizes)
    code = max((question.exit for question, findings in answers if findings.sentences), default=ExitCode.DONE)
    console = printer(quiet=as_json)
    for line in _lines(answers):
        console.print(line)
    console.print("; ".join(findings.counts for _, findings in answers if findings.counts))
    if tables:
        console.print(tables.table, soft_wrap=False)
    if as_json:
        sizes = {"tables": tables.document} if tables else {}
        print_json({"ok": not code, **_documents(answers), **sizes, "asked": _as_records(answers)})
    if code:
        raise typer.Exit(code)


def _examine(*, with_sizes: bool) -> "tuple[list[tuple[DoctorQuestion, Findings]], Tables | None]":
    from cli.doctor.checks import measured_tables  # noqa: PLC0415
    from cli.doctor.findings import QUESTIONS  # noqa: PLC0415  (what looks takes seconds to load, which --help can save)
    from db.connection.database_settings import DatabaseSettings  # noqa: PLC0415
    from db.connection.transactions import make_engine  # noqa: PLC0415

    engine = make_engine(DatabaseSettings.from_environment(os.environ))
    try:
        answers = [(question, _looked(question, engine)) for question in QUESTIONS]
        return answers, measured_tables(engine) if with_sizes else None
    finally:
        engine.dispose()


def _looked(question: "DoctorQuestion", engine: "Engine") -> "Findings":
    """Run the checks; where a table was dropped, the others still run. Raises where migrations are missing."""
    from psycopg.errors import UndefinedColumn, UndefinedTable  # noqa: PLC0415

    from cli.doctor.checks import Findings  # noqa: PLC0415
    from migrations.schema import newest, number  # noqa: PLC0415

    try:
        return question.look(engine)
    except (UndefinedColumn, UndefinedTable) as error:
        if number(engine) != newest():
            raise
        return Findings([f"nobody can say, since {str(error).partition(chr(10))[0]}: {question.asks}"])


def _lines(answers: "Iterable[tuple[DoctorQuestion, Findings]]") -> Iterator[str]:
    for question, findings in answers:
        for sentence in findings.sentences:
            yield f"✗ {sentence}" if question.exit else sentence
        if findings.sentences:
            yield f"  → {question.mends}"


def _documents(answers: "Iterable[tuple[DoctorQuestion, Findings]]") -> dict[str, Any]:
    """All documents as one; lists of the same name are joined."""
    document: dict[str, Any] = {}
    for _, findings in answers:
        for name, value in findings.document.items():
            document[name] = document[name] + value if name in document else value
    return document


def _as_records(answers: "Iterable[tuple[DoctorQuestion, Findings]]") -> list[Mapping[str, Any]]:
    return [
        {
            "question": question.asks,
            "found": list(findings.sentences),
            "mends": question.mends,
            "exit": int(question.exit),
            "metric": question.metric or None,
        }
        for question, findings in answers
    ]
