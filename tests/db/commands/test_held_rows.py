"""An undo is heard also while somebody holds the deployment's row; whoever must wait is told who holds it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

import psycopg
import pytest
from sqlalchemy import Engine

from db.commands.execute import execute_pending
from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine
from domain.steering.command_effect import HeldError
from tests.support.pictures.pictures import DESTROYED, PROVISIONING, READY, ROLLING_BACK
from tests.support.rows.deployments import ROLLING, ask, make_deployment, read, snapshot, write
from tests.support.rows.rows import everything, told


@pytest.fixture
def hasty(database: str) -> Iterator[Engine]:
    """An engine that waits a tenth of a second for a row."""
    made = make_engine(DatabaseSettings(url=database, lock_timeout=100))
    yield made
    made.dispose()


@contextmanager
def somebody_holds(database: str, how: LiteralString = "FOR UPDATE", name: str = "web") -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, application_name="a person's psql") as held:
        held.execute("SELECT FROM deployments WHERE name = %s " + how, (name,))
        yield held


@pytest.mark.parametrize("how", ["FOR UPDATE", "FOR NO KEY UPDATE"])
@pytest.mark.parametrize("verb", ["undo", "abort"])
def test_a_way_back_is_noted_beside_a_row_that_is_held_and_taken_when_it_is_free(
    engine: Engine, hasty: Engine, database: str, verb: str, how: LiteralString
) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    with somebody_holds(database, how) as held:
        done = ask(hasty, verb, deployment="web", actor="ann", reason="it leaks")
        pid = held.info.backend_pid
        said = f"web has been held for [0-9] s by a person's psql, process {pid} of PostgreSQL"
        assert re.fullmatch(said, done.result["noted"])
        assert done.result["rollout_id"] == str(made.rollout_id)
        assert execute_pending(hasty) == frozenset()
        assert snapshot_without_lock(engine) == "provisioning"
    assert execute_pending(hasty) == {ROLLING_BACK}
    assert snapshot(engine, made.id).status == ROLLING_BACK
    assert told(engine) == [(verb, "ann", {"undo": "undone", "abort": "aborted"}[verb] + ", going back: it leaks")]
    assert execute_pending(hasty) == frozenset()


def snapshot_without_lock(engine: Engine) -> str:
    ((row),) = read(engine, "SELECT sub_step FROM deployments")
    return str(row["sub_step"])


def test_a_pause_is_heard_and_its_request_sent_again_has_the_answer_of_the_first(
    engine: Engine, hasty: Engine, database: str
) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    with somebody_holds(database):
        for _ in "12":
            assert "noted" in ask(hasty, "pause", request_id="r-1", deployment="web").result
    execute_pending(engine)
    assert snapshot(engine, made.id).paused_at is not None
    again = ask(engine, "pause", request_id="r-1", deployment="web")
    assert (again.repeated, again.result["version"], again.result.get("noted")) == (True, 2, None)


def test_what_was_asked_while_the_row_was_held_comes_before_what_is_asked_later(
    engine: Engine, hasty: Engine, database: str
) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    with somebody_holds(database):
        ask(hasty, "pause", deployment="web")
        ask(hasty, "undo", deployment="web")
    ask(engine, "scale", deployment="web", desired_replicas=4)
    assert [phase for phase, _, _ in told(engine)] == ["pause", "undo", "scale"]
    assert (snapshot(engine, made.id).status, snapshot(engine, made.id).desired_replicas) == (ROLLING_BACK, 4)
    assert everything(engine)["wishes"] == []


def test_an_apply_hears_what_was_asked_before(engine: Engine, hasty: Engine, database: str) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    with somebody_holds(database):
        ask(hasty, "abort", deployment="web")
    ask(engine, "apply", documents=[{"deployment": "web", "replicas": 3, "policy": dict(ROLLING)}])
    assert snapshot(engine, made.id).status == ROLLING_BACK


def test_a_wish_that_is_refused_says_so_in_the_history_and_holds_up_no_other(
    engine: Engine, hasty: Engine, database: str
) -> None:
    make_deployment(engine, "■■■", status=READY)
    other = make_deployment(engine, "■■|◇", status=PROVISIONING, name="api")
    with somebody_holds(database), somebody_holds(database, name="api"):
        ask(hasty, "pause", deployment="web", actor="ann")
        ask(hasty, "pause", deployment="api")
    assert execute_pending(engine) == {PROVISIONING}
    assert snapshot(engine, other.id).paused_at is not None
    ((phase, actor, message),) = [each for each in told(engine) if each[1] == "ann"]
    assert (phase, actor) == ("pause", "ann")
    assert message.startswith("refused: ")
    assert everything(engine)["wishes"] == []


def test_a_wish_that_only_a_newer_release_understands_is_given_up(engine: Engine) -> None:
    made = make_deployment(engine)
    payload = '{"deployment": "web", "actor": "ann", "reason": "", "speed": "high"}'
    add = "INSERT INTO wishes (deployment_id, request_id, task, payload) VALUES (%s, 'r', 'rollway.undo', %s)"
    write(engine, add, made.id, payload)
    assert execute_pending(engine) == frozenset()
    assert [(phase, actor) for phase, actor, _ in told(engine)] == [("undo", "ann")]


def test_a_wish_does_not_outlive_its_deployment(engine: Engine, hasty: Engine, database: str) -> None:
    made = make_deployment(engine, "", status=READY)
    with somebody_holds(database) as held:
        ask(hasty, "undo", deployment="web")
        held.execute("UPDATE deployments SET lifecycle = 'destroyed'")
    assert execute_pending(engine) == frozenset()
    assert everything(engine)["wishes"] == []
    assert snapshot(engine, made.id).status == DESTROYED


def test_what_cannot_be_noted_is_told_who_holds_the_row(engine: Engine, hasty: Engine, database: str) -> None:
    make_deployment(engine)
    with somebody_holds(database) as held:
        before = everything(engine)
        with pytest.raises(HeldError) as refused:
            ask(hasty, "scale", deployment="web", desired_replicas=4)
        pid = held.info.backend_pid
        sentence = f"web has been held for [0-9] s by a person's psql, process {pid} of PostgreSQL; ask again"
        refused.match(sentence)
        refused.match(f"pg_terminate_backend\\({pid}\\)")
        with pytest.raises(HeldError, match=f"process {pid} of PostgreSQL"):
            ask(hasty, "apply", documents=[{"deployment": "web", "replicas": 4}])
        assert everything(engine) == before
