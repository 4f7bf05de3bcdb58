"""What the migrations make is the same after a dump and its restore, which writes every part anew."""

import subprocess
from pathlib import Path

from sqlalchemy import Engine

from db.audit.schema_faults import schema_faults, schema_parts
from db.connection.transactions import in_transaction
from migrations.schema import expected
from stack.parts.postgres_account import installed_tree
from tests.support.rows.databases import engine_on


def test_a_restored_dump_is_made_of_the_same_parts(database: str, empty_database: str, tmp_path: Path) -> None:
    programs, dump = installed_tree() / "bin", tmp_path / "dump"
    subprocess.run([programs / "pg_dump", "--format=custom", f"--file={dump}", database], check=True)
    subprocess.run([programs / "pg_restore", "--no-owner", f"--dbname={empty_database}", dump], check=True)
    restored = engine_on(empty_database)
    assert list(schema_faults(expected(), in_transaction(restored, schema_parts))) == []
    restored.dispose()


def test_each_part_of_a_database_in_which_nothing_is_is_missing(engine: Engine) -> None:
    parts = in_transaction(engine, schema_parts)
    assert [fault.part for fault in schema_faults(parts, {})] == list(parts)
    assert len(parts) > 400
