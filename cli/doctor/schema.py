"""Looks whether the database is made of what the migrations make: of its parts, its number and its contract."""

from collections.abc import Iterator
from dataclasses import asdict

from sqlalchemy import Engine

from cli.doctor.question import Findings
from db.audit.schema import SchemaFault, schema_faults, schema_parts, triggers_rest
from db.connection.engine import in_transaction
from db.connection.server import read_installation
from domain.installation.contract import CONTRACT
from migrations.schema import expected, is_known, newest, number

RESTING = SchemaFault(
    "setting session_replication_role",
    "session_replication_role is not 'origin' for this role in this database: no trigger and no foreign key holds",
    "ALTER ROLE CURRENT_USER RESET session_replication_role;"
    " DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET session_replication_role', current_database()); END $$;",
)

_SET_NUMBER = "\"DELETE FROM alembic_version; INSERT INTO alembic_version VALUES ('{}')\""
_SET_CONTRACT = '"UPDATE installation SET contract = {}"'


def schema(engine: Engine) -> Findings:
    """Triggers, constraints, indexes, functions and columns against those that all migrations leave.

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
    """Say which migrations are missing, here or there; empty where the number alone is wrong, or nothing is."""
    seen = number(engine)
    if seen == newest():
        return ""
    wanted, found = expected(), in_transaction(engine, schema_parts)
    if not is_known(seen):
        newer = f"the database has seen migration {seen}, which this release does not know: it knows {newest()}"
        return newer if any(schema_faults(wanted, found)) else ""
    lacks = any(part.startswith(("table ", "column ")) for part in wanted.keys() - found.keys())
    return f"the database has seen migration {seen}, and {newest()} is the newest" if lacks else ""


def _misnumbered(engine: Engine) -> Iterator[str]:
    if (seen := number(engine)) != newest():
        yield (
            f"alembic_version says {seen}, but the schema is that of {newest()}, so no migration could run: "
            f"{_SET_NUMBER.format(newest())} in psql puts it right"
        )
    contract = in_transaction(engine, read_installation).contract
    if contract != CONTRACT:
        yield (
            f"the database's contract is {contract}, but the schema is of contract {CONTRACT}, and workers may refuse "
            f"it: {_SET_CONTRACT.format(CONTRACT)} in psql puts it right"
        )
