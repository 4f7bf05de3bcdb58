"""`rollway doctor`: what should be impossible in the database, and every recorded decision made once more."""

import os
from dataclasses import asdict
from typing import Any

import typer

from cli.exits import ExitCode
from cli.options import AsJson
from cli.output import print_json, printer
from cli.servers import database_errors, find_servers

_STATEMENT_TIMEOUT = 60_000
"""In milliseconds: one statement reads every decision."""


def doctor(*, as_json: AsJson = False) -> None:
    """Look for states that should be impossible, and replay every recorded decision. Changes nothing.

    Exit code 1 when something was found.
    """
    find_servers()
    with database_errors():
        findings, replayed = _examine()
    console = printer(quiet=as_json)
    for finding in findings:
        console.print(f"✗ {finding.deployment}: {finding.sentence} ({finding.code})")
    for step in replayed.differing:
        console.print(f"✗ {step}")
    console.print(
        f"{len(findings)} impossible states; {replayed.equal} decisions replayed, {len(replayed.differing)} differ"
    )
    sound = not findings and not replayed.differing
    if as_json:
        print_json(
            {
                "ok": sound,
                "findings": [asdict(finding) for finding in findings],
                "replayed": replayed.equal,
                "failed_writes": replayed.failed_writes,
                "differing": [str(step) for step in replayed.differing],
            }
        )
    if not sound:
        raise typer.Exit(ExitCode.REFUSED)


def _examine() -> tuple[Any, Any]:
    from db.audit.impossible import impossible_combinations  # noqa: PLC0415
    from db.audit.replay import replay_rollouts  # noqa: PLC0415
    from db.engine import in_transaction, make_engine  # noqa: PLC0415  (SQLAlchemy takes half a second)
    from db.settings import DatabaseSettings  # noqa: PLC0415

    patient = DatabaseSettings.from_environment(os.environ).model_copy(update={"statement_timeout": _STATEMENT_TIMEOUT})
    engine = make_engine(patient)
    try:
        return in_transaction(
            engine, lambda connection: (impossible_combinations(connection), replay_rollouts(connection))
        )
    finally:
        engine.dispose()
