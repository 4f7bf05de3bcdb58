"""The checks of the doctor, in pieces, each a short transaction: no statement is long, however much there is."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from redis.exceptions import RedisError
from rich.table import Table
from sqlalchemy import Engine

from cli.show import status
from cli.terminal.exits import ExitCode
from cli.terminal.output import columns, printer
from cli.terminal.server_warnings import look_at_redis
from db.audit.drift import drift, renamed_revisions
from db.audit.invariants import Finding, all_chains, impossible_combinations
from db.audit.schema_faults import SchemaFault, schema_faults, schema_parts, triggers_rest
from db.audit.step_replay import ReplayReport, replay_pages
from db.certificates import certificate_troubles
from db.connection.server import read_installation
from db.connection.transactions import in_transaction
from db.retention import TableSize, fleet_rows_to_cut, late_cuts, page_of_past, rows_to_cut, table_sizes
from db.views.fleet_settings import SubscriptionView, all_subscriptions
from db.views.fleet_views import all_hosts, secrets_for_all, signs_of_life
from domain.installation.contract import CONTRACT
from domain.installation.settings import Retention
from domain.replicas.host_choice import is_too_far
from domain.text.numbers import duration
from migrations.schema import expected, is_known, newest, number
from tasks.redis.dead_letters import how_many_aside, last_aside
from tasks.worker.connections import redis_client


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings, a sentence each: none where all is well. `counts`: of checked things; `document`: for --json.

    Lists that several questions have under the same name are one in the document.
    """

    sentences: Sequence[str] = ()
    counts: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DoctorQuestion:
    """A question, the check that answers it, and what a person does about a finding.

    `mends`: the command that mends it, or says more. `exit`: how doctor ends when something is found; `DONE` is for
    what is no fault here. `metric`: where Prometheus has the same; empty: nowhere.
    """

    asks: str
    look: Callable[[Engine], Findings]
    mends: str
    exit: ExitCode = ExitCode.DONE
    metric: str = ""


_COMES_BACK_WITHIN = timedelta(days=1)
_CUT_WITHIN_DAYS = 1.0


_WITHOUT_A_WALL = (
    "Until then each replica there reads the passwords, keys and logs of the home, the environment and the memory of "
    "workers, beat, servers, proxies and other replicas, speaks to each of them with those passwords, and may end any"
)


def impossible_states(engine: Engine) -> Findings:
    """Rows that no transaction of ours leaves behind."""
    return _audited(in_transaction(engine, impossible_combinations), "impossible states")


def receipts(engine: Engine) -> Findings:
    """Receipts that were changed after they were sealed, or are gone."""
    return _audited(list(all_chains(engine)), "receipts broken")


def _audited(findings: list[Finding], what: str) -> Findings:
    sentences = [f"{finding.deployment}: {finding.sentence} ({finding.code})" for finding in findings]
    return Findings(sentences, f"{len(findings)} {what}", {"findings": [asdict(finding) for finding in findings]})


def replayed(engine: Engine) -> Findings:
    """Every recorded decision, page by page, with their number on a terminal meanwhile."""
    report = ReplayReport()
    with printer(stderr=True, quiet=not sys.stderr.isatty()).status("replaying decisions") as status:
        for page in replay_pages(engine):
            report += page
            status.update(f"{report.equal:,} decisions replayed")
    differing, lost = [str(step) for step in report.differing], [asdict(step) for step in report.lost]
    counts = f"{report.equal} decisions replayed, {len(differing)} differ, {len(lost)} are lost"
    document = {"replayed": report.equal, "failed_writes": report.failed_writes, "differing": differing, "lost": lost}
    return Findings(report.findings, counts, document)


def silent_redis(_: Engine) -> Findings:
    try:
        look_at_redis()
    except RedisError:
        return Findings(["Redis does not answer, so nobody knows which messages were put aside"])
    return Findings()


def messages_aside(_: Engine) -> Findings:
    """The messages that did not fit, put aside by workers; null in the document where Redis is silent."""
    try:
        count, last = how_many_aside(redis_client()), last_aside(redis_client())
    except RedisError:
        return Findings(document={"aside": None})
    document = {"aside": {"count": count, "last": [asdict(message) for message in last]}}
    if not last:
        return Findings(document=document)
    put = f"{count} messages were put aside because they did not fit, the last of queue {last[0].queue}:"
    return Findings([f"{put}\n  {last[0].at.isoformat()}: {last[0].why}"], document=document)


def untold_events(engine: Engine) -> Findings:
    """The events that were given up, or that are being retried."""
    subscriptions = in_transaction(engine, all_subscriptions)
    document = {"subscriptions": [asdict(subscription) for subscription in subscriptions]}
    return Findings([sentence for view in subscriptions for sentence in _untold(view)], document=document)


def _untold(view: SubscriptionView) -> Iterator[str]:
    if view.given_up:
        yield f"{view.given_up} events were given up that {view.name} should have had; the last: {view.why}"
    elif view.waiting and view.why:
        yield f"{view.waiting} events wait for {view.name}: {view.why}"


def drifted(check: str) -> Callable[[Engine], Findings]:
    """The check for rows that should not stay as they are: `check` is one of `db.audit.drift`."""
    return lambda engine: Findings(in_transaction(engine, partial(drift, check=check)))


def renamed(engine: Engine) -> Findings:
    """Revisions whose content is not the one behind their generated name."""
    return Findings(
        [
            f"{each.deployment}: revision {each.name} looks named by its content, whose name is {each.right}"
            for each in renamed_revisions(engine)
        ]
    )


def retention_behind(engine: Engine) -> Findings:
    """Rows that should have been cut days ago, by the settings of this shell."""
    return Findings(list(late_cuts(engine, Retention.from_environment(os.environ), _CUT_WITHIN_DAYS)))


def certificates_that_fail(engine: Engine) -> Findings:
    """Certificates that failed to be issued, renewed, trusted or shown, and hosts without any."""
    return Findings(in_transaction(engine, certificate_troubles))


def lost_hosts(engine: Engine) -> Findings:
    """Hosts that have been silent for more than a day, and those that are up but cut off from Redis."""
    hosts = in_transaction(engine, all_hosts)
    silent = [(host.name, host.now - host.last_seen_at) for host in hosts]
    return Findings(
        [f"host {name} has been silent for {duration(since)}" for name, since in silent if since > _COMES_BACK_WITHIN]
        + [
            f"host {host.name} reaches PostgreSQL, and has not been answered by Redis for"
            f" {duration(host.now - host.deaf_since)}"
            for host in hosts
            if host.deaf_since and host.down_since is None
        ]
    )


def wrong_clocks(engine: Engine) -> Findings:
    """Hosts that are up and whose clock is off by more than a minute."""
    return Findings(
        [
            f"the clock of host {host.name} is {abs(host.clock_offset_seconds):.0f} s "
            f"{'ahead of' if host.clock_offset_seconds > 0 else 'behind'} that of PostgreSQL"
            for host in in_transaction(engine, all_hosts)
            if host.down_since is None and is_too_far(host.clock_offset_seconds)
        ]
    )


def missing_walls(engine: Engine) -> Findings:
    """The hosts where replicas run as the workers' own user, and what prevents another."""
    sentences = status.missing_walls(in_transaction(engine, signs_of_life))
    findings = [f"{sentence}. {_WITHOUT_A_WALL}" for sentence in sentences]
    return Findings(findings, document={"unwalled": findings})


def held_replicas(_: Engine) -> Findings:
    """The process that has held the lock on the replicas of this machine for too long."""
    return Findings(list(status.held_up()))


def secrets_of_others(engine: Engine) -> Findings:
    """The hosts where an operator of one deployment may hand another one's secrets to a program."""
    by_host = in_transaction(engine, secrets_for_all)
    return Findings(
        [f"host {host} gives every deployment what is in {', '.join(secrets)}" for host, secrets in by_host.items()],
        document={"secrets_for_all": by_host},
    )


RESTING = SchemaFault(
    "setting session_replication_role",
    "session_replication_role is not 'origin' for this role in this database: no trigger and no foreign key holds",
    "ALTER ROLE CURRENT_USER RESET session_replication_role;"
    " DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET session_replication_role', current_database()); END $$;",
)

_SET_NUMBER = "\"DELETE FROM alembic_version; INSERT INTO alembic_version VALUES ('{}')\""
_SET_CONTRACT = '"UPDATE installation SET contract = {}"'


def schema(engine: Engine) -> Findings:
    """Triggers, constraints, indexes, functions and columns, compared with those after all migrations.

    A database that has not seen all of them, or more than there are here, is another question's.
    """
    if _stage(engine):
        return Findings(document={"schema": []})
    faults = list(_faults(engine))
    return Findings([fault.sentence for fault in faults], document={"schema": [asdict(fault) for fault in faults]})


def _faults(engine: Engine) -> Iterator[SchemaFault]:
    if in_transaction(engine, triggers_rest):
        yield RESTING
    yield from schema_faults(expected(), in_transaction(engine, schema_parts))


def migrated(engine: Engine) -> Findings:
    """The number of the last migration, and the contract, which one of them writes."""
    if stage := _stage(engine):
        return Findings([stage])
    return Findings(list(_misnumbered(engine)))


def _stage(engine: Engine) -> str:
    """The missing migrations, here or there; empty where the number alone is wrong, or nothing is."""
    version = number(engine)
    if version == newest():
        return ""
    expected_parts, actual = expected(), in_transaction(engine, schema_parts)
    if not is_known(version):
        newer = f"the database has seen migration {version}, which this release does not know: it knows {newest()}"
        return newer if any(schema_faults(expected_parts, actual)) else ""
    lacks = any(part.startswith(("table ", "column ")) for part in expected_parts.keys() - actual.keys())
    return f"the database has seen migration {version}, and {newest()} is the newest" if lacks else ""


def _misnumbered(engine: Engine) -> Iterator[str]:
    if (version := number(engine)) != newest():
        yield (
            f"alembic_version says {version}, but the schema is that of {newest()}, so no migration could run: "
            f"{_SET_NUMBER.format(newest())} in psql puts it right"
        )
    contract = in_transaction(engine, read_installation).contract
    if contract != CONTRACT:
        yield (
            f"the database's contract is {contract}, but the schema is of contract {CONTRACT}, and workers may refuse "
            f"it: {_SET_CONTRACT.format(CONTRACT)} in psql puts it right"
        )


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables. `past`: by table, the number of rows that may be cut."""

    sizes: Sequence[TableSize]
    past: Mapping[str, int]

    @property
    def document(self) -> list[dict[str, Any]]:
        return [{**asdict(size), "to_cut": self.past.get(size.name, 0)} for size in self.sizes]

    @property
    def table(self) -> Table:
        table = columns("TABLE", "ROWS", "BYTES", "TO CUT")
        for size in self.sizes:
            table.add_row(size.name, f"{size.rows:,}", f"{size.bytes:,}", f"{self.past.get(size.name, 0):,}")
        return table


def measured_tables(engine: Engine) -> Tables:
    """Measure all, and count the rows to be cut next by the settings of this shell."""
    retention = Retention.from_environment(os.environ)
    past = in_transaction(engine, partial(fleet_rows_to_cut, retention=retention))
    page = in_transaction(engine, partial(page_of_past, retention=retention, after=None))
    while page.ids or page.last:
        past += in_transaction(engine, partial(rows_to_cut, retention=retention, ids=page.ids))
        if page.last is None:
            break
        page = in_transaction(engine, partial(page_of_past, retention=retention, after=page.last))
    return Tables(in_transaction(engine, table_sizes), past)
