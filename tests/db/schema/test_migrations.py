"""Migrations go there and back, and write statuses as the enums do; two at once do each other no harm."""

import hashlib
import os
import re
import subprocess
import sys
from enum import StrEnum
from typing import Any, LiteralString

from alembic import command
from sqlalchemy import Connection, Engine, event

from db.connection.transactions import transaction
from db.locking.statuses import ACTIVE, PRESENT, words
from domain.autoscaling.rule import Aggregate, Comparator, MetricSource
from domain.model.states import DeploymentSubStep, Lifecycle, RolloutOutcome, RouteStatus, TrafficStatus, Verdict
from domain.traffic.snapshot import EntranceKind
from migrations.schema import EXPECTED, configuration, newest, number
from stack.home.folder import project_root
from tests.support.rows.databases import schema_written
from tests.support.rows.deployments import read
from tests.support.rows.rows import tables
from tests.support.stack.waiting import eventually

COLUMNS = """
    SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull, a.attidentity,
           pg_get_expr(d.adbin, d.adrelid) AS default
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S') AND c.relname <> 'alembic_version'
"""
CONSTRAINTS = """
    SELECT conrelid::regclass::text AS table, conname, pg_get_constraintdef(oid) AS is, convalidated, condeferrable
      FROM pg_constraint
     WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'alembic_version'
"""
INDEXES = """
    SELECT pg_get_indexdef(indexrelid) AS is FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
     WHERE relnamespace = 'public'::regnamespace AND relname <> 'alembic_version'
"""
STORED = """
    SELECT relname, reloptions, relpersistence FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'alembic_version'
"""
TRIGGERS = "SELECT pg_get_triggerdef(oid) AS is FROM pg_trigger WHERE NOT tgisinternal"
FUNCTIONS = "SELECT pg_get_functiondef(oid) AS is FROM pg_proc WHERE pronamespace = 'public'::regnamespace"


RELEASED = {
    "0001_start.py": "fd7efbe0393dc86555cce5196f21ba100235b608b52b92e03e67cee446d75b6b",
    "0001_start.sql": "b98d4aae761fd91f689ca3bcc79d3b11ec6448f1e69724366d02e65e5ab9188a",
    "0002_years.py": "52763802439631a7f77b00207a5e71c23c7a70a77153f01c86ee774562bfd09f",
    "0002_years.sql": "3e8db9389f73f26f15b7b7e86ac2aba89b4321570f54d11b880bb9e5b6864e56",
}
"""The files of migrations that a release has, by their SHA-256. A later change is a migration of its own."""


def test_the_migrations_of_a_release_are_never_edited() -> None:
    folder = project_root() / "migrations/versions"
    assert {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in RELEASED} == RELEASED
    assert {path.name for path in folder.glob("000[0-2]*")} == set(RELEASED)


def shape(engine: Engine) -> dict[str, list[str]]:
    """Everything Postgres knows of our tables, as sorted text."""
    return {
        name: sorted(str(row) for row in read(engine, query))
        for name, query in {
            "columns": COLUMNS,
            "stored": STORED,
            "constraints": CONSTRAINTS,
            "indexes": INDEXES,
            "triggers": TRIGGERS,
            "functions": FUNCTIONS,
        }.items()
    }


def migrate(engine: Engine, to: str) -> None:
    config = configuration()
    is_back = to == "base" or to < (number(engine) or "")
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        (command.downgrade if is_back else command.upgrade)(config, to)


FILES = "SELECT relname, relfilenode FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
MIGRATIONS = sorted(file.name[:4] for file in (project_root() / "migrations/versions").glob("0*.py"))
FIRST = project_root() / "migrations/versions/0001_start.sql"
WORDS: dict[LiteralString, type[StrEnum]] = {
    "deployments_lifecycle_check": Lifecycle,
    "deployments_sub_step_check": DeploymentSubStep,
    "rollouts_outcome_check": RolloutOutcome,
    "rollout_steps_verdict_check": Verdict,
    "routes_status_check": RouteStatus,
    "routes_traffic_status_check": TrafficStatus,
    "autoscaling_rules_source_check": MetricSource,
    "autoscaling_rules_aggregate_check": Aggregate,
    "autoscaling_rules_comparator_check": Comparator,
    "entrances_kind_check": EntranceKind,
}


def test_columns_take_the_words_of_the_enums_and_no_others(engine: Engine) -> None:
    definition = "SELECT pg_get_constraintdef(oid) AS is FROM pg_constraint WHERE conname = %s"
    for check, enum in WORDS.items():
        [row] = read(engine, definition, check)
        assert sorted(re.findall(r"'([^']+)'::text", row["is"])) == sorted(enum), check


def test_triggers_write_the_lists_of_statuses_as_every_other_query_does() -> None:
    triggers = FIRST.read_text(encoding="utf-8").partition("-- The budgets")[2]
    drained = f"status IN ({words([RouteStatus.TERMINATING, RouteStatus.TERMINATED])})"
    for condition in (ACTIVE, f"r.{PRESENT}", drained):
        assert condition in triggers
    assert triggers.count("status NOT IN") + triggers.count("status IN") == 3


def test_every_migration_can_be_undone_and_done_again(empty_engine: Engine) -> None:
    left = {}
    for migration in MIGRATIONS:
        migrate(empty_engine, migration)
        left[migration] = shape(empty_engine)
    for migration in reversed(MIGRATIONS):
        migrate(empty_engine, migration)
        assert shape(empty_engine) == left[migration], f"back to {migration}"
    migrate(empty_engine, "head")
    assert shape(empty_engine) == left[newest()]
    migrate(empty_engine, "base")
    assert not any(shape(empty_engine).values())


def test_no_migration_writes_a_table_anew_that_the_version_before_reads(empty_engine: Engine) -> None:
    """Who has looked before it commits, and reads after that, would see no row of such a table: callers got 404."""
    migrate(empty_engine, MIGRATIONS[0])
    before = read(empty_engine, FILES)
    migrate(empty_engine, "head")
    assert [file for file in before if file not in read(empty_engine, FILES)] == []


def test_a_migration_waits_for_no_lock_longer_than_its_timeouts(empty_engine: Engine) -> None:
    seen: set[tuple[str, str]] = set()

    @event.listens_for(empty_engine, "before_cursor_execute")
    def look(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if "CREATE TABLE deployments" in statement:
            values = [connection.exec_driver_sql(f"SHOW {name}").fetchone() for name in TIMEOUTS]
            seen.add(tuple(str(value[0]) for value in values if value))  # type: ignore[arg-type]

    migrate(empty_engine, "head")
    assert seen == {("4s", "1min")}


TIMEOUTS = ("lock_timeout", "statement_timeout")


def test_of_two_migrations_at_once_one_waits_and_both_end_well(empty_engine: Engine, empty_database: str) -> None:
    environment = {**os.environ, "DATABASE_URL": empty_database}
    upgrade = [sys.executable, "-m", "cli.main", "migrate"]
    with transaction(empty_engine) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('rollway migrations'))")
        both = [
            subprocess.Popen(
                upgrade,
                cwd=project_root(),
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for _ in range(2)
        ]
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        eventually(lambda: len(connection.execute(waiting).fetchall()) == len(both))
    for migration in both:
        said, _ = migration.communicate(timeout=600)
        assert migration.returncode == 0, said
    assert len(read(empty_engine, "SELECT * FROM alembic_version")) == 1
    assert len(shape(empty_engine)["columns"]) > 80


def test_every_table_stands_in_the_page_of_tables(engine: Engine) -> None:
    page = (project_root() / "docs/internals/tables.md").read_text("utf-8")
    section = page.partition("## The tables")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", section, re.MULTILINE)
    assert set(tables(engine)) == {name.strip("`") for row in rows for name in row.split(", ")}


def test_the_file_that_doctor_goes_by_is_what_the_migrations_make(engine: Engine) -> None:
    assert EXPECTED.read_text(encoding="utf-8") == schema_written(engine), "make schema"
