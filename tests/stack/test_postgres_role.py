import os
from pathlib import Path

import psycopg
import pytest

from stack.parts.postgres import postgres_part, postgres_url, prepare_data, run_program, single_user
from stack.parts.postgres_account import choose_account, installed_tree
from tests.support.stack.servers import EmbeddedServer, embedded_postgres


def test_the_role_owns_its_database_and_is_no_superuser(tmp_path: Path) -> None:
    with embedded_postgres(tmp_path / "pg") as server, psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE of_ours (line text)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied to COPY to or from an ext"):
            connection.execute("COPY of_ours FROM PROGRAM 'id'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT pg_read_file('postgresql.conf')")


def test_a_cluster_whose_role_was_its_superuser_keeps_all_but_that(tmp_path: Path) -> None:
    account = choose_account(installed_tree())
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    if account.user is not None:
        os.chown(data, account.user, account.user)
    options = ("-D", account.data_argument(data), "-U", "rollway", "--auth=trust", "--no-sync", "--encoding=UTF8")
    run_program(data, account, account.command("initdb", *options))
    (data / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
    tables = ("CREATE TYPE colour AS ENUM ('red')", "CREATE TABLE kept (id bigserial, colour colour)")
    single_user(data, account, ["ALTER ROLE rollway PASSWORD 'old'", "CREATE DATABASE rollway"], "postgres")
    single_user(data, account, [*tables, "INSERT INTO kept (colour) VALUES ('red')"], "rollway")

    said: list[str] = []
    for _ in range(2):
        assert prepare_data(tmp_path, account, "new", say=said.append) == data
    assert said == ["its role is no superuser any more, and owns its database only"]

    server = EmbeddedServer(postgres_part(data, account), postgres_url(data, "new"), tmp_path / "log")
    server.start()
    try:
        with psycopg.connect(server.url) as connection:
            connection.execute("ALTER TABLE kept ADD COLUMN more text")
            connection.execute("ALTER TYPE colour ADD VALUE 'green'")
            connection.execute("INSERT INTO kept (colour) VALUES ('red')")
            assert connection.execute("SELECT id, colour FROM kept").fetchall() == [(1, "red"), (2, "red")]
            assert connection.execute("SELECT usesuper FROM pg_user WHERE usename = user").fetchone() == (False,)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(f"postgresql://postgres:old@/rollway?host={data}")
    finally:
        server.stop()
