"""`rollway doctor`: what should be impossible, every recorded decision made once more, and how big the tables are."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from cli.database_errors import database_errors
from cli.options import AsJson
from cli.servers import find_servers
from cli.terminal.exits import ExitCode
from cli.terminal.notes import look_at_redis
from cli.terminal.output import columns, print_json, printer
from db.views.fleet.settings import SubscriptionView, all_subscriptions
from db.views.fleet.signs import signs_of_life

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from db.audit.impossible import Finding
    from db.audit.replay import ReplayReport
    from db.retention.rules import TableSize
    from tasks.redis.aside import AsideMessage


def doctor(*, as_json: AsJson = False) -> None:
    """Look for states that should be impossible, check the chains of receipts, and replay every recorded decision.

    Changes nothing. Exit code 1 when something was found. Messages that did not fit, which workers have put aside, and
    events that were given up are shown too: they are somebody else's mistake, and no fault here. So are the sizes of
    all tables, and how many rows of each will be cut next by the settings of this shell.
    """
    find_servers()
    with database_errors():
        examined = _examine()
    findings, replayed, subscriptions = examined.findings, examined.replayed, examined.subscriptions
    aside = _messages_aside()
    console = printer(quiet=as_json)
    for finding in findings:
        console.print(f"✗ {finding.deployment}: {finding.sentence} ({finding.code})")
    for step in replayed.differing:
        console.print(f"✗ {step}")
    console.print(
        f"{len(findings)} impossible states; {replayed.equal} decisions replayed, {len(replayed.differing)} differ"
    )
    for sentence in (*_about(aside), *_about_events(subscriptions), *examined.unwalled):
        console.print(sentence)
    console.print(_sizes(examined), soft_wrap=False)
    sound = not findings and not replayed.differing
    if as_json:
        print_json(
            {
                "ok": sound,
                "findings": [asdict(finding) for finding in findings],
                "replayed": replayed.equal,
                "failed_writes": replayed.failed_writes,
                "unwalled": examined.unwalled,
                "differing": [str(step) for step in replayed.differing],
                "subscriptions": [asdict(subscription) for subscription in subscriptions],
                "tables": [{**asdict(size), "to_cut": examined.past.get(size.name, 0)} for size in examined.sizes],
                "aside": aside and {"count": aside[0], "last": [asdict(message) for message in aside[1]]},
            }
        )
    if not sound:
        raise typer.Exit(ExitCode.REFUSED)


@dataclass(frozen=True, slots=True)
class _Examined:
    """The doctor's findings. `past`: by table, how many rows may be cut. `unwalled`: a wall that is missing."""

    findings: "Sequence[Finding]"
    replayed: "ReplayReport"
    subscriptions: Sequence[SubscriptionView]
    unwalled: Sequence[str]
    sizes: "Sequence[TableSize]"
    past: Mapping[str, int]


def _examine() -> _Examined:
    """In pieces, each a short transaction of its own, so that no statement is long whatever there is."""
    from db.audit.impossible import all_chains, impossible_combinations  # noqa: PLC0415
    from db.connection.engine import in_transaction, make_engine  # noqa: PLC0415  (SQLAlchemy takes half a second)
    from db.connection.settings import DatabaseSettings  # noqa: PLC0415
    from db.retention.rules import table_sizes  # noqa: PLC0415

    engine = make_engine(DatabaseSettings.from_environment(os.environ))
    try:
        return _Examined(
            findings=[*in_transaction(engine, impossible_combinations), *all_chains(engine)],
            replayed=_replay(engine),
            subscriptions=in_transaction(engine, all_subscriptions),
            unwalled=[sentence for sentence in [in_transaction(engine, signs_of_life).missing_wall] if sentence],
            sizes=in_transaction(engine, table_sizes),
            past=_past(engine),
        )
    finally:
        engine.dispose()


def _replay(engine: "Engine") -> "ReplayReport":
    """Every recorded decision, page by page, with their number on a terminal meanwhile."""
    from db.audit.replay import ReplayReport, replay_pages  # noqa: PLC0415

    replayed = ReplayReport()
    with printer(stderr=True, quiet=not sys.stderr.isatty()).status("replaying decisions") as status:
        for page in replay_pages(engine):
            replayed += page
            status.update(f"{replayed.equal:,} decisions replayed")
    return replayed


def _past(engine: "Engine") -> Mapping[str, int]:
    """Count what will be cut next, by the settings of this shell."""
    from db.connection.engine import in_transaction  # noqa: PLC0415
    from db.retention.cut import commands_to_cut, page_of_past, rows_to_cut  # noqa: PLC0415
    from domain.installation.retention import Retention  # noqa: PLC0415

    retention = Retention.from_environment(os.environ)
    past = Counter(commands=in_transaction(engine, partial(commands_to_cut, retention=retention)))
    page = in_transaction(engine, partial(page_of_past, retention=retention, after=None))
    while page.ids or page.last:
        past += in_transaction(engine, partial(rows_to_cut, retention=retention, ids=page.ids))
        if page.last is None:
            break
        page = in_transaction(engine, partial(page_of_past, retention=retention, after=page.last))
    return past


def _sizes(examined: _Examined) -> Table:
    table = columns("TABLE", "ROWS", "BYTES", "TO CUT")
    for size in examined.sizes:
        table.add_row(size.name, f"{size.rows:,}", f"{size.bytes:,}", f"{examined.past.get(size.name, 0):,}")
    return table


def _messages_aside() -> "tuple[int, list[AsideMessage]] | None":
    """Return how many there were, and the last ones; None when Redis does not answer."""
    from redis.exceptions import RedisError  # noqa: PLC0415  (Celery's imports take a second)

    from tasks.redis.aside import how_many_aside, last_aside  # noqa: PLC0415
    from tasks.worker.connections import redis_client  # noqa: PLC0415

    try:
        look_at_redis()
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


def _about_events(subscriptions: Iterable[SubscriptionView]) -> Iterator[str]:
    for view in subscriptions:
        if view.given_up:
            yield f"{view.given_up} events were given up that {view.name} should have had; the last: {view.why}"
        elif view.waiting and view.why:
            yield f"{view.waiting} events wait for {view.name}: {view.why}"
