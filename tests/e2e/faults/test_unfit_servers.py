"""A Postgres or a Redis that is too old is named in one sentence by whatever connects to it, and nothing begins."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from sqlalchemy import make_url

from domain.installation.contract import WRONG_INSTALLATION
from stack.home.folder import project_root
from tests.support.faults.forwarder import forwarder
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

WORKER = ("celery", "-A", "tasks.app", "worker", "-P", "threads", "-c", "1")
BEAT = ("celery", "-A", "tasks.app", "beat", "--pidfile=")


def run(environment: dict[str, str], **commands: tuple[str, ...]) -> dict[str, tuple[int, str]]:
    """All at once: the exit code of each, and what it said last."""
    processes = {
        name: subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=project_root(),
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, command in commands.items()
    }
    said = {name: process.communicate(timeout=900)[1] for name, process in processes.items()}
    assert [name for name, text in said.items() if "Traceback" in text] == []
    return {name: (process.returncode, said[name].splitlines()[-1]) for name, process in processes.items()}


@contextmanager
def sounding(url: str, said: bytes, heard: bytes) -> Iterator[tuple[str, str]]:
    """The URL of this real server, which says another version of itself; and its address for people."""
    with forwarder(make_url(url).port or 0, (said, heard)) as network:
        changed = make_url(url).set(port=network.port)
        yield changed.render_as_string(hide_password=False), f"127.0.0.1:{network.port}/{changed.database}"


def test_a_postgres_that_is_too_old_is_named_in_one_sentence_by_all_who_connect(
    database: str, redis_url: str, tmp_path: Path
) -> None:
    with sounding(database, b"server_version\x0018", b"server_version\x0015") as (url, address):
        environment = {"DATABASE_URL": url, "REDIS_URL": redis_url, "ROLLWAY_HOME": str(tmp_path)}
        said = run(
            {**environment, "ROLLWAY_API_PORT": "7"},
            migrate=("cli.main", "migrate"),
            status=("cli.main", "status"),
            scale=("cli.main", "scale", "web", "2"),
            worker=WORKER,
            api=("api",),
        )
    sentence = f"PostgreSQL at {address} is 15; Rollway needs 17 or newer"
    assert said == {
        "migrate": (3, f"DATABASE_URL: {sentence}."),
        "status": (3, f"{sentence}."),
        "scale": (3, f"{sentence}."),
        "worker": (WRONG_INSTALLATION, f"Rollway does not begin: {sentence}"),
        "api": (WRONG_INSTALLATION, f"Rollway does not begin: {sentence}"),
    }


def test_a_redis_that_is_too_old_is_named_in_one_sentence_by_all_who_connect(
    database: str, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    version = str(redis_client.info("server")["redis_version"])
    older = f"5{version[1:]}"
    with sounding(redis_url, f"redis_version:{version}".encode(), f"redis_version:{older}".encode()) as (url, address):
        environment = {"DATABASE_URL": database, "REDIS_URL": url, "ROLLWAY_HOME": str(tmp_path)}
        said = run(environment, slots=("cli.main", "slots"), worker=WORKER, beat=BEAT)
    sentence = f"Redis at {address} is {older}; Rollway needs 6.2 or newer"
    assert said == {
        "slots": (3, f"{sentence}."),
        "worker": (WRONG_INSTALLATION, f"Rollway does not begin: {sentence}"),
        "beat": (WRONG_INSTALLATION, f"Rollway does not begin: {sentence}"),
    }


def test_a_redis_that_throws_messages_away_is_warned_of_and_used(fleet: Fleet, redis_client: redis.Redis) -> None:
    redis_client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        fleet.start_beat()
        fleet.ask("create_deployment", deployment="web", desired_replicas=0)
        ended = run(fleet.environment, scale=("cli.main", "scale", "web", "1"))
        eventually(lambda: "maxmemory-policy allkeys-lru" in fleet.log("beat"), what="the warning")
    finally:
        redis_client.config_set("maxmemory-policy", "noeviction")
    code, _ = ended["scale"]
    assert code == 0


def test_a_redis_url_that_is_none_ends_workers_and_beat_with_a_sentence_and_for_good(database: str) -> None:
    environment = {"DATABASE_URL": database, "REDIS_URL": "sentinel://127.0.0.1:26379/0"}
    right = "redis://:password@host:port/0, rediss://... or unix://:password@/path?db=0"
    sentence = f"Rollway does not begin: REDIS_URL must be {right}"
    ended = (WRONG_INSTALLATION, sentence)
    assert run(environment, worker=WORKER, beat=BEAT) == {"worker": ended, "beat": ended}
