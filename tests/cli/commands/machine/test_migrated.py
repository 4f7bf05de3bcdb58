"""The start of a stack looks whether there is something to migrate before it loads what migrates."""

import os
import subprocess
import sys

import psycopg
import pytest

import migrations.schema
from stack.parts.migrate_if_needed import has_newest, newest
from stack.parts.processes import MIGRATE


def _started(url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(MIGRATE, env=os.environ | {"DATABASE_URL": url}, capture_output=True, text=True, check=False)


def test_an_empty_database_is_migrated_and_the_newest_is_left_alone_without_a_word(empty_database: str) -> None:
    assert not has_newest(empty_database)
    first = _started(empty_database)
    assert (first.returncode, first.stdout.strip().rpartition(" has ")[2]) == (0, f"schema {newest()} now.")
    assert has_newest(empty_database)
    second = _started(empty_database)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "change", ["UPDATE alembic_version SET version_num = '0001'", "INSERT INTO alembic_version VALUES ('9999')"]
)
def test_another_schema_is_not_the_newest(empty_database: str, change: str) -> None:
    with psycopg.connect(empty_database) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num text)")
        connection.execute("INSERT INTO alembic_version VALUES (%s)", [newest()])
    assert has_newest(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute(change.encode())
    assert not has_newest(empty_database)


def test_a_database_that_is_away_is_one_sentence() -> None:
    ended = _started("postgresql://me:topsecret@127.0.0.1:1/rollway")
    assert (ended.returncode, ended.stderr.count("\n")) == (3, 1)
    assert "PostgreSQL at 127.0.0.1:1 cannot be reached" in ended.stderr


def test_the_newest_by_its_file_is_the_newest_to_alembic() -> None:
    assert newest() == migrations.schema.newest()
    assert MIGRATE[0] == sys.executable
