"""Database, home and Redis must be of one installation, whose id is in a file and under a key, written once."""

import os
import sys
import time
from pathlib import Path
from typing import NoReturn
from uuid import UUID

import psycopg
import structlog
from celery.signals import worker_init
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Engine

from db.connection.engine import engine, in_transaction
from db.connection.server import read_installation
from domain.installation.contract import HOME_FILE, REDIS_KEY, WrongInstallationError, check
from domain.installation.servers import UnfitServerError
from runtime.machine.ownership import why_not_trusted
from tasks.redis.server import doubt_about
from tasks.settings import KEY_PREFIX, settings
from tasks.worker.connections import redis_client

_AWAY = (psycopg.Error, RedisError)
_PAUSE_SECONDS = 1.0
_log = structlog.get_logger(__name__)


def compare(on: Engine, client: Redis, home: Path | None) -> None:
    """Compare the three, and take over a home and a Redis that are of nobody yet. None: this process has no home.

    Raises WrongInstallationError, and what Postgres and Redis raise while they are away.
    """
    database = in_transaction(on, read_installation)
    warning = check(database, owner_of_home(home), owner_of_redis(client))
    take_over_redis(client, database.id)
    if home is not None:
        take_over_home(home, database.id)
    check(database, owner_of_home(home), owner_of_redis(client))  # another one may have been as quick
    if warning:
        _log.warning(warning)


def begin(home: Path | None) -> None:
    """Return when the three are of one installation; wait while one is away. Otherwise this process ends."""
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


@worker_init.connect
def _begin_as_worker(**_: object) -> None:
    begin(settings().home)


WRONG_INSTALLATION = 78
"""The exit code of a process that refuses to begin: EX_CONFIG of sysexits.h. Starting it again changes nothing."""

_KEY = f"{KEY_PREFIX}{REDIS_KEY}"


def owner_of_home(home: Path | None) -> UUID | None:
    """The installation of this home; None for one that is of nobody yet. Raises WrongInstallationError."""
    if home is None:
        return None
    if why := why_not_trusted(home):
        raise WrongInstallationError(f"ROLLWAY_HOME ({home}) {why}, or set it to a folder of your own")
    try:
        return _uuid((home / HOME_FILE).read_text(encoding="utf-8"), f"the file {home / HOME_FILE}")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WrongInstallationError(f"the file {home / HOME_FILE} cannot be read: {error.strerror}") from error


def owner_of_redis(client: Redis) -> UUID | None:
    """The installation whose messages this Redis carries; None before the first. Raises WrongInstallationError."""
    found = client.get(_KEY)
    return _uuid(found.decode(errors="replace"), f"the key {_KEY!r} of Redis") if isinstance(found, bytes) else None


def take_over_home(home: Path, installation: UUID) -> None:
    """Make a home that is of nobody yet this installation's. Raises WrongInstallationError when it cannot be written.

    The file is there wholly or not at all: several workers may begin at once.
    """
    if (home / HOME_FILE).exists():
        return
    draft = home / f".{HOME_FILE}.{os.getpid()}"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.write_text(f"{installation}\n", encoding="utf-8")
        draft.replace(home / HOME_FILE)
    except OSError as error:
        raise WrongInstallationError(f"ROLLWAY_HOME ({home}) cannot be written: {error.strerror}") from error


def take_over_redis(client: Redis, installation: UUID) -> None:
    """Make a Redis that is of nobody yet this installation's."""
    client.set(_KEY, str(installation), nx=True)


def refuse_to_begin(why: str) -> NoReturn:
    """End this process, from whichever of its threads, with one sentence and its own code."""
    print(f"Rollway does not begin: {why}", file=sys.stderr, flush=True)  # noqa: T201  (logging may not be set up yet)
    os._exit(WRONG_INSTALLATION)


def _uuid(text: str, where: str) -> UUID:
    try:
        return UUID(text.strip())
    except ValueError:
        raise WrongInstallationError(f"{where} holds no id of an installation: remove it") from None
