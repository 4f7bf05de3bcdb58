"""Who a home and a Redis belong to is written once, read again, and told when it cannot be."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
import redis
from sqlalchemy import Engine

from db.connection.server import read_installation
from db.connection.transactions import in_transaction
from domain.installation.contract import CONTRACT, HOME_FILE, WRONG_INSTALLATION, WrongInstallationError
from tasks.worker.installation import compare
from tasks.worker.owners import owner_of_home, owner_of_redis
from tests.support.rows.deployments import write
from tests.support.stack.stack import ROOT

KEY = "rollway:installation"


def own_id(engine: Engine) -> UUID:
    return in_transaction(engine, read_installation).id


def test_a_home_and_a_redis_of_nobody_are_taken_over_and_stay_so(
    engine: Engine, redis_client: redis.Redis, tmp_path: Path
) -> None:
    home = tmp_path / "new" / "home"
    for _ in range(2):
        compare(engine, redis_client, home)
        assert owner_of_home(home) == owner_of_redis(redis_client) == own_id(engine)
    redis_client.flushall()
    compare(engine, redis_client, home)
    assert owner_of_redis(redis_client) == own_id(engine), "an emptied Redis is taken over again"
    assert [path.name for path in home.iterdir()] == [HOME_FILE]


def test_a_process_without_a_home_makes_none(engine: Engine, redis_client: redis.Redis) -> None:
    compare(engine, redis_client, None)
    assert owner_of_home(None) is None


@pytest.mark.parametrize("whose", ["home", "redis"])
def test_what_belongs_to_another_is_refused_and_left_as_it_is(
    whose: str, engine: Engine, redis_client: redis.Redis, tmp_path: Path
) -> None:
    stranger = str(uuid4())
    if whose == "home":
        (tmp_path / HOME_FILE).write_text(stranger)
    else:
        redis_client.set(KEY, stranger)
    with pytest.raises(WrongInstallationError, match=stranger):
        compare(engine, redis_client, tmp_path)
    assert {str(owner) for owner in (owner_of_home(tmp_path), owner_of_redis(redis_client)) if owner} == {stranger}


@pytest.mark.parametrize("content", ["", "web", "\\0"])
def test_a_damaged_id_is_named_with_its_place(
    content: str, engine: Engine, redis_client: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / HOME_FILE).write_text(content)
    with pytest.raises(
        WrongInstallationError, match=rf"{tmp_path}/{HOME_FILE} holds no id of an installation: remove it"
    ):
        compare(engine, redis_client, tmp_path)
    (tmp_path / HOME_FILE).unlink()
    redis_client.set(KEY, content)
    with pytest.raises(WrongInstallationError, match=f"the key '{KEY}' of Redis holds no id"):
        compare(engine, redis_client, tmp_path)


def test_a_home_that_is_no_folder_is_told_in_one_sentence(
    engine: Engine, redis_client: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WrongInstallationError, match=r"file/installation cannot be read: Not a directory"):
        compare(engine, redis_client, tmp_path / "file")


def test_the_database_has_one_installation_with_the_contract_of_this_release(engine: Engine) -> None:
    assert in_transaction(engine, read_installation).contract == CONTRACT
    with pytest.raises(psycopg.errors.UniqueViolation):
        write(engine, "INSERT INTO installation (contract) VALUES (1)")


def test_a_home_that_others_may_write_in_is_no_home_for_a_worker(
    engine: Engine, redis_client: redis.Redis, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(WrongInstallationError, match=r"^ROLLWAY_HOME \(.*\) may be written by others than its owner"):
        compare(engine, redis_client, tmp_path)


@pytest.mark.parametrize("started", [("celery", "-A", "tasks.app"), ("tasks",)])
def test_a_worker_whose_tasks_would_not_share_one_process_does_not_begin(
    database: str, redis_url: str, tmp_path: Path, started: tuple[str, ...]
) -> None:
    own = {"DATABASE_URL": database, "REDIS_URL": redis_url, "ROLLWAY_HOME": str(tmp_path)}
    command = [sys.executable, "-m", *started, "worker"]
    done = subprocess.run(command, env=os.environ | own, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == WRONG_INSTALLATION
    assert "this worker has the pool prefork: start it with -P threads" in done.stderr
