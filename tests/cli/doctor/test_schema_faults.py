"""Each fault of the schema that somebody may plant is told by doctor, with the statement that mends it."""

import json
import re
from dataclasses import dataclass
from typing import LiteralString

import psycopg
import pytest
from sqlalchemy import Engine

from cli.terminal.exits import ExitCode
from stack.home.folder import project_root
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import make_deployment, write

pytestmark = pytest.mark.usefixtures("servers")


@dataclass(frozen=True)
class Planted:
    statement: LiteralString
    says: str
    is_mended: bool = True
    faults: int = 1


PLANTED = [
    Planted("DROP TRIGGER routes_within_ceiling ON routes", "trigger routes.routes_within_ceiling is missing"),
    Planted(
        "ALTER TABLE routes DISABLE TRIGGER routes_above_floor", "routes_above_floor() SWITCHED OFF', and should be"
    ),
    Planted("ALTER TABLE routes ENABLE REPLICA TRIGGER routes_above_floor", "routes_above_floor() SWITCHED TO R'"),
    Planted(
        "CREATE OR REPLACE FUNCTION routes_within_ceiling() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN RETURN NULL; END $$",
        "function routes_within_ceiling does something else than it should",
    ),
    Planted("DROP FUNCTION routes_above_floor CASCADE", "function routes_above_floor is missing", faults=2),
    Planted(
        "ALTER TABLE routes DROP CONSTRAINT routes_traffic_ratio_check",
        "constraint routes.routes_traffic_ratio_check is missing",
    ),
    Planted(
        "ALTER TABLE routes DROP CONSTRAINT routes_traffic_ratio_check,"
        " ADD CONSTRAINT routes_traffic_ratio_check CHECK (traffic_ratio BETWEEN 0 AND 2)",
        "traffic_ratio <= 2::double precision)', and should be 'CHECK (",
    ),
    Planted(
        "ALTER TABLE rollouts DROP CONSTRAINT rollouts_to_revision_id_fkey",
        "constraint rollouts.rollouts_to_revision_id_fkey is missing",
    ),
    Planted(
        "ALTER TABLE outbox ALTER CONSTRAINT outbox_subscription_fkey NOT ENFORCED",
        "ON DELETE CASCADE NOT ENFORCED', and should be 'FOREIGN KEY",
    ),
    Planted("DROP INDEX commands_created_at_idx", "index commands.commands_created_at_idx is missing"),
    Planted("DROP INDEX rollouts_one_open_key", "index rollouts.rollouts_one_open_key is missing"),
    Planted("ALTER TABLE deployments DROP COLUMN waits_for", "column deployments.waits_for is missing"),
    Planted(
        "ALTER TABLE deployments ALTER reason DROP NOT NULL",
        "column deployments.reason is 'text DEFAULT ''::text', and should be 'text DEFAULT ''::text NOT NULL'",
        is_mended=False,
    ),
    Planted(
        "ALTER TABLE deployments ADD COLUMN colour text",
        "column deployments.colour is there, and no migration made it: text",
        is_mended=False,
    ),
    Planted(
        "CREATE UNIQUE INDEX one_address ON routes (address)",
        "index routes.one_address is there, and no migration made it: CREATE UNIQUE INDEX one_address",
        is_mended=False,
    ),
    Planted("ALTER TABLE receipts SET UNLOGGED", "table receipts is 'UNLOGGED TABLE'", is_mended=False),
    Planted(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET session_replication_role = replica', current_database());"
        " END $$",
        "no trigger and no foreign key holds",
    ),
]


def run(database: str, statements: str) -> None:
    """As psql does it."""
    with psycopg.connect(database) as connection:
        connection.execute(statements.encode())


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.statement[:60])
def test_a_fault_of_the_schema_is_told_and_mended(
    rollway: Rollway, engine: Engine, database: str, planted: Planted
) -> None:
    write(engine, planted.statement)
    said = rollway("doctor")
    assert said.code == ExitCode.REFUSED
    assert planted.says in said.out
    faults = json.loads(rollway("doctor", "--json").out)["schema"]
    assert [bool(fault["mends"]) for fault in faults] == [planted.is_mended] * planted.faults
    if planted.is_mended:
        run(database, "\n".join(fault["mends"] for fault in faults))
        assert rollway("doctor").code == ExitCode.DONE


def test_what_others_put_beside_our_tables_is_no_fault(rollway: Rollway, engine: Engine) -> None:
    write(engine, "CREATE TABLE notes (id int PRIMARY KEY, said text CHECK (said <> ''))")
    write(engine, "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n'")
    write(engine, "CREATE INDEX by_reason ON rollouts (reason)")
    said = rollway("doctor")
    assert (said.code, "✗" in said.out) == (ExitCode.DONE, False)


NEWEST = max(path.name[:4] for path in (project_root() / "migrations" / "versions").glob("0*.py"))
NUMBERED = [
    (
        "UPDATE alembic_version SET version_num = '0001'",
        f"alembic_version says 0001, but the schema is that of {NEWEST}",
    ),
    ("DELETE FROM alembic_version", f"alembic_version says None, but the schema is that of {NEWEST}"),
    (
        "UPDATE alembic_version SET version_num = '0099'",
        f"alembic_version says 0099, but the schema is that of {NEWEST}",
    ),
    ("UPDATE installation SET contract = 1", "the database's contract is 1, but the schema is of contract 2"),
    ("UPDATE installation SET contract = 7", "the database's contract is 7, but the schema is of contract 2"),
]


@pytest.mark.parametrize(("statement", "says"), NUMBERED)
def test_a_wrong_number_is_told_with_what_mends_it(
    rollway: Rollway, engine: Engine, database: str, statement: LiteralString, says: str
) -> None:
    write(engine, statement)
    said = rollway("doctor")
    assert (said.code, says in said.out) == (ExitCode.REFUSED, True)
    (mends,) = re.findall(r': "(.+)" in psql', said.out)
    run(database, mends)
    assert rollway("doctor").code == ExitCode.DONE


def test_a_database_that_a_newer_release_has_migrated_is_its_own_to_look_at(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■")
    write(engine, "ALTER TABLE deployments ADD COLUMN colour text")
    write(engine, "UPDATE alembic_version SET version_num = '0099'")
    said = rollway("doctor")
    assert said.code == ExitCode.REFUSED
    assert f"✗ the database has seen migration 0099, which this release does not know: it knows {NEWEST}" in said.out
    assert "colour" not in said.out


def test_a_wrong_number_hides_nothing_else(rollway: Rollway, engine: Engine) -> None:
    write(engine, "DROP TRIGGER routes_above_floor ON routes")
    write(engine, "UPDATE alembic_version SET version_num = '0001'")
    said = rollway("doctor").out
    assert "✗ trigger routes.routes_above_floor is missing" in said
    assert f"✗ alembic_version says 0001, but the schema is that of {NEWEST}" in said


def test_a_database_that_lacks_a_migration_is_to_be_migrated(rollway: Rollway, engine: Engine) -> None:
    write(engine, "ALTER TABLE deployments DROP COLUMN short_lives")
    write(engine, "UPDATE alembic_version SET version_num = '0001'")
    said = rollway("doctor")
    assert (said.code, f"✗ the database has seen migration 0001, and {NEWEST} is the newest" in said.out) == (1, True)
    assert "short_lives" not in said.out
