"""Database, home and Redis must belong to one installation, whose id is written once: in a file and under a key."""

import time
from pathlib import Path
from typing import Any

import psycopg
import structlog
from celery.signals import worker_init
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Engine

from db.connection.server import read_installation
from db.connection.transactions import engine, in_transaction
from domain.installation.contract import UnfitServerError, WrongInstallationError, check
from tasks.task_settings import settings
from tasks.worker.connections import redis_client
from tasks.worker.owners import (
    doubt_about,
    owner_of_home,
    owner_of_redis,
    refuse_to_begin,
    take_over_home,
    take_over_redis,
)

_AWAY = (psycopg.Error, RedisError)
_PAUSE_SECONDS = 1.0
_log = structlog.get_logger(__name__)


def compare(on: Engine, client: Redis, home: Path | None) -> None:
    """Compare the three, and take over a home and a Redis without an owner. None: this process has no home.

    Raises WrongInstallationError, and what Postgres and Redis raise while they are away.
    """
    database = in_transaction(on, read_installation)
    warning = check(database, owner_of_home(home), owner_of_redis(client))
    take_over_redis(client, database.id)
    if home is not None:
        take_over_home(home, database.id)
    check(database, owner_of_home(home), owner_of_redis(client))  # another process may have been as quick
    if warning:
        _log.warning(warning)


def begin(home: Path | None) -> None:
    """Return when the three belong to one installation; wait while one is away. Otherwise end this process."""
    while True:
        try:
            if doubt := doubt_about(redis_client()):
                _log.warning(doubt)
            return compare(engine(), redis_client(), home)
        except (WrongInstallationError, UnfitServerError) as error:
            refuse_to_begin(error.message)
        except psycopg.errors.UndefinedTable:
            refuse_to_begin("the database lacks tables of this version of Rollway: run 'rollway migrate' first")
        except _AWAY as error:
            _log.warning("waiting for Postgres and Redis", error=str(error).partition("\n")[0])
        time.sleep(_PAUSE_SECONDS)


def is_ours() -> bool:
    """Whether replicas here may be ended because the database does not expect them. False when that is not certain."""
    try:
        compare(engine(), redis_client(), settings().home)
    except WrongInstallationError as error:
        _log.error("nothing is swept: home or Redis is of another installation", why=error.message)
        return False
    except _AWAY as error:
        _log.warning("nothing is swept now", error=str(error).partition("\n")[0])
        return False
    return True


_SHARING_POOLS = ("celery.concurrency.thread", "celery.concurrency.solo")
"""Pools whose tasks share one process: connections and replicas of a process must not cross a fork."""


@worker_init.connect
def _begin_as_worker(sender: Any = None, **_: object) -> None:  # noqa: ANN401  (Celery's worker)
    if sender is not None and sender.pool_cls.__module__ not in _SHARING_POOLS:
        pool = sender.pool_cls.__module__.rpartition(".")[2]
        refuse_to_begin(f"tasks run in threads, and this worker has the pool {pool}: start it with -P threads")
    begin(settings().home)
