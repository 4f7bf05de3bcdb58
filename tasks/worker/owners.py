"""Whose a home and a Redis are: an id in a file and under a key, written once. No database is needed: beat has none."""

import os
import sys
from pathlib import Path
from typing import NoReturn
from uuid import UUID

import redis
from redis import Redis
from redis.exceptions import ResponseError

from domain.installation.contract import (
    HOME_FILE,
    REDIS_KEY,
    WRONG_INSTALLATION,
    WrongInstallationError,
    doubt_about_memory,
    refuse_old_redis,
)
from runtime.machine.path_access import why_not_trusted
from tasks.task_settings import KEY_PREFIX

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
    value = client.get(_KEY)
    return _uuid(value.decode(errors="replace"), f"the key {_KEY!r} of Redis") if isinstance(value, bytes) else None


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


def doubt_about(client: redis.Redis) -> str | None:
    """A warning about this server, or None. Raises UnfitServerError where it is too old, and RedisError."""
    address = address_of(client)
    try:
        refuse_old_redis(str(client.info("server")["redis_version"]), address)
        return doubt_about_memory(str(client.info("memory")["maxmemory_policy"]), address)
    except (ResponseError, KeyError):  # it does not tell everybody
        return None


def address_of(client: redis.Redis) -> str:
    """host:port/database, for people."""
    arguments = client.connection_pool.connection_kwargs
    return f"{arguments.get('host')}:{arguments.get('port')}/{arguments.get('db') or 0}"
