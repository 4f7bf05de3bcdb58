"""`rollway doctor`: what should be impossible, every recorded decision made once more, and messages put aside."""

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from cli.exits import ExitCode
from cli.options import AsJson
from cli.output import print_json, printer
from cli.servers import database_errors, find_servers

if TYPE_CHECKING:
    from tasks.redis.aside import AsideMessage

_STATEMENT_TIMEOUT = 60_000
"""In milliseconds: one statement reads every decision."""


def doctor(*, as_json: AsJson = False) -> None:
    """Look for states that should be impossible, and replay every recorded decision. Changes nothing.

    Exit code 1 when something was found. Messages that did not fit, which workers have put aside, are shown too: they
    are somebody else's mistake, and no fault here.
    """
    find_servers()
    with database_errors():
        findings, replayed = _examine()
    aside = _messages_aside()
    console = printer(quiet=as_json)
    for finding in findings:
        console.print(f"✗ {finding.deployment}: {finding.sentence} ({finding.code})")
    for step in replayed.differing:
        console.print(f"✗ {step}")
    console.print(
        f"{len(findings)} impossible states; {replayed.equal} decisions replayed, {len(replayed.differing)} differ"
    )
    for sentence in _about(aside):
        console.print(sentence)
    sound = not findings and not replayed.differing
    if as_json:
        print_json(
            {
                "ok": sound,
                "findings": [asdict(finding) for finding in findings],
                "replayed": replayed.equal,
                "failed_writes": replayed.failed_writes,
                "differing": [str(step) for step in replayed.differing],
                "aside": aside and {"count": aside[0], "last": [asdict(message) for message in aside[1]]},
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


def _messages_aside() -> "tuple[int, list[AsideMessage]] | None":
    """How many there were, and the last ones; None when Redis does not answer."""
    from redis.exceptions import RedisError  # noqa: PLC0415  (Celery's imports take a second)

    from tasks.connections import redis_client  # noqa: PLC0415
    from tasks.redis.aside import how_many_aside, last_aside  # noqa: PLC0415

    try:
        return how_many_aside(redis_client()), last_aside(redis_client())
    except RedisError:
        return None


def _about(aside: "tuple[int, list[AsideMessage]] | None") -> Iterator[str]:
    match aside:
        case None:
            yield "Redis does not answer, so nobody knows which messages were put aside"
        case count, [newest, *_]:
            yield f"{count} messages were put aside because they did not fit, the last of queue {newest.queue}:"
            yield f"  {newest.at.isoformat()}: {newest.why}"
