"""When Postgres or Redis does not answer."""

import json
import os
import time
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from sqlalchemy import Engine, text

from runtime.machine.identity import Identity, identify
from stack.home.folder import Home
from stack.home.stack_state import PartCondition, PartState, StackState, write_state
from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PROVISIONING, ROLLING_BACK
from tests.support.rows.deployments import NOBODY, make_deployment, snapshot
from tests.support.rows.refused_writes import TRANSACTION_TIMEOUT, refused_writes

pytestmark = pytest.mark.usefixtures("servers")

US = identify(os.getpid())
ENDED = Identity(2**22 - 1, 1.0, "")


@pytest.mark.parametrize("arguments", [["status"], ["scale", "web", "3"], ["history", "web"]])
def test_a_postgres_that_is_away_is_named_with_host_and_port_and_no_password(
    rollway: Rollway, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:topsecret@127.0.0.1:1/rollway")
    began = time.monotonic()
    ended = rollway(*arguments)
    assert ended.code == 3
    assert ended.err.startswith("PostgreSQL at 127.0.0.1:1/rollway cannot be reached")
    assert "topsecret" not in ended.err
    assert time.monotonic() - began < 30


def test_a_postgres_of_somebody_else_that_is_away_leads_to_database_url_and_not_back_to_status(
    rollway: Rollway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me@127.0.0.1:1/rollway")
    ended = rollway("status")
    assert ended.err.endswith("cannot be reached: it does not run, or DATABASE_URL does not say where.\n")


def test_a_postgres_without_the_tls_that_is_asked_for_is_told_as_such(
    rollway: Rollway, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"{database}?sslmode=require")
    assert "speaks no TLS, and the sslmode of DATABASE_URL asks for it" in rollway("status").err


@pytest.mark.parametrize(
    ("supervisor", "condition", "error", "said"),
    [
        (ENDED, "running", "", "nothing of the stack in {home} runs any more; 'rollway up' starts it."),
        (
            US,
            "crashing",
            "PANIC: could not write: No space left on device",
            (
                "in the stack in {home} it is crashing, PANIC: could not write: No space left on device; "
                "its log is {home}/logs/postgres.log."
            ),
        ),
    ],
)
def test_a_postgres_of_the_stack_of_this_folder_that_is_away_is_told_with_what_the_stack_knows_of_it(
    rollway: Rollway,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    supervisor: Identity,
    condition: PartCondition,
    error: str,
    said: str,
) -> None:
    url = "postgresql://me@127.0.0.1:1/rollway"
    monkeypatch.setenv("DATABASE_URL", url)
    home = Home(tmp_path / "home")
    home.create()
    postgres = PartState(name="postgres", condition=condition, server=True, process=None, error=error)
    state = StackState(supervisor=supervisor, phase="running", database_url=url, redis_url="", parts=(postgres,))
    write_state(home, state)
    ended = rollway("status")
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert ended.err.endswith(f"cannot be reached: {said.format(home=home.root)}\n")


def test_a_postgres_that_runs_and_does_not_answer_is_not_told_as_one_that_cannot_be_reached(
    rollway: Rollway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = "postgresql://me@127.0.0.1:1/rollway"
    monkeypatch.setenv("DATABASE_URL", url)
    home = Home(tmp_path / "home")
    home.create()
    assert US is not None
    postgres = PartState(name="postgres", condition="running", server=True, process=US)
    state = StackState(supervisor=US, phase="running", database_url=url, redis_url="", parts=(postgres,))
    write_state(home, state)
    said = f"does not answer, though it runs in the stack in {home.root}; its log is {home.log('postgres')}.\n"
    assert rollway("status").err.endswith(said)


def test_a_row_that_somebody_holds_takes_an_undo_and_names_its_holder_to_all_others(
    rollway: Rollway, engine: Engine, database: str
) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    with psycopg.connect(database, application_name="psql") as held:
        held.execute("SELECT FROM deployments FOR UPDATE")
        told = f"by psql, process {held.info.backend_pid} of PostgreSQL"
        undone, scaled = rollway("undo", "web", "--json"), rollway("scale", "web", "4")
        assert (undone.code, undone.err) == (0, "")
        assert told in json.loads(undone.out)["noted"]
        assert scaled.code == 1
        assert f"{told}; ask again when it is done" in " ".join(scaled.err.split())
        noted = " ".join(rollway("pause", "web").out.split())
        assert f"{told}; 'pause' is noted, and comes first when that ends" in noted
    assert rollway("scale", "web", "4").code == 0
    assert snapshot(engine, made.id).status == ROLLING_BACK


@pytest.mark.parametrize("url", ["postgresql://me:topsecret@[/rollway", "host=nowhere topsecret", "mysql://topsecret"])
def test_a_database_url_that_makes_no_sense_is_one_sentence_without_the_secret(
    rollway: Rollway, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    ended = rollway("status")
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert "DATABASE_URL" in ended.err
    assert "topsecret" not in ended.err


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("53100", "has no space left on its disk"),
        ("57014", "did not answer in time"),
        (TRANSACTION_TIMEOUT, "did not answer in time"),
    ],
)
def test_a_postgres_that_refuses_a_write_is_called_what_it_is(
    rollway: Rollway, engine: Engine, code: LiteralString, said: str
) -> None:
    make_deployment(engine)
    with refused_writes(engine, "commands", code):
        ended = rollway("scale", "web", "4")
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert said in ended.err


def test_a_database_without_tables_says_how_to_get_them(
    rollway: Rollway, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"{database.rpartition('/')[0]}/postgres")
    ended = rollway("status")
    assert ended.code == 3
    assert "run 'rollway migrate'" in ended.err


def test_without_redis_a_write_is_done_all_the_same(
    rollway: Rollway, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", NOBODY)
    make_deployment(engine)
    ended = rollway("scale", "web", "4")
    assert (ended.code, ended.out) == (0, "web scaled from 3 to 4 replicas\n")
    assert "the next tick does it" in ended.err
    with engine.connect() as connection:
        assert connection.execute(text("SELECT desired_replicas FROM deployments")).scalar_one() == 4
