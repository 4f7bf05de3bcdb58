"""The servers that Rollway works with, and whether a database, a home and a Redis are of one installation.

the home is of another installation                       refused
Redis is of another installation                          refused
the database has an older contract than this release      refused, for its migrations have not run
the database's contract is newer by one                   warned of: an upgrade is under way
the database's contract is newer by more                  refused, for this release cannot read what it holds
a home, or a Redis, that is of none yet                   belongs to this one from now on
"""

from dataclasses import dataclass
from uuid import UUID

from domain.text.errors import RollwayError

POSTGRES_AT_LEAST = 17


REDIS_AT_LEAST = (6, 2)


MEMORY_POLICY = "noeviction"


class UnfitServerError(RollwayError):
    """Postgres or Redis does not fit; the message names its address, its version and the needed one."""


def refuse_old_postgres(version: int, address: str) -> None:
    """Raises UnfitServerError for a server that is too old. `version` as the server itself counts: 180001 for 18.1."""
    major = version // 10_000
    if major < POSTGRES_AT_LEAST:
        raise UnfitServerError(f"PostgreSQL at {address} is {major}; Rollway needs {POSTGRES_AT_LEAST} or newer")


def refuse_encoding(encoding: str, address: str) -> None:
    """Raises UnfitServerError for a database that does not keep text as UTF-8."""
    if encoding != "UTF8":
        message = f"the database at {address} keeps text as {encoding}; Rollway needs one in UTF8"
        raise UnfitServerError(f"{message}: make it with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0")


def refuse_old_redis(version: str, address: str) -> None:
    """Raises UnfitServerError for a server that is too old. `version` as it tells it, such as 7.2.4."""
    if tuple(int(part) for part in version.split(".")[:2]) < REDIS_AT_LEAST:
        least = ".".join(map(str, REDIS_AT_LEAST))
        raise UnfitServerError(f"Redis at {address} is {version}; Rollway needs {least} or newer")


def doubt_about_memory(policy: str, address: str) -> str | None:
    """A warning about a Redis that evicts keys when its memory is full; None if it refuses writes instead.

    A queue is a key like any other. It is no refusal: what must not be lost is in Postgres, and ticks repeat.
    """
    if policy == MEMORY_POLICY:
        return None
    return (
        f"Redis at {address} has maxmemory-policy {policy}, which throws messages away when its memory is full: "
        f"set it to {MEMORY_POLICY}"
    )


CONTRACT = 2
"""What this release writes for others to read: columns, payloads, specs. Counted up once in a release that writes what
the one before it could not read; its migration writes the same number into the table `installation`."""

HOME_FILE = "installation"
"""A file in the home: the id of the installation whose replicas it holds."""

REDIS_KEY = "installation"
"""A key in Redis, after the prefix of all keys: the id of the installation whose messages it carries."""
WRONG_INSTALLATION = 78
"""The exit code of a process that refuses to begin: EX_CONFIG of sysexits.h. Starting it again changes nothing."""


class WrongInstallationError(RollwayError):
    """Database, home and Redis are not of one installation, or this release does not know the database's contract."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation as the database has it. `contract`: that of the newest release that has migrated it."""

    id: UUID
    contract: int


def check(database: Installation, home: UUID | None, redis: UUID | None) -> str | None:
    """A warning, or None. Raises WrongInstallationError. A home or Redis that is None belongs to nobody yet."""
    if home not in (None, database.id):
        raise WrongInstallationError(
            f"DATABASE_URL leads to installation {database.id}, but the replicas in ROLLWAY_HOME are of installation "
            f"{home}: correct one of the two, or stop the other's workers and remove the file {HOME_FILE!r} of "
            "ROLLWAY_HOME to hand it over, which ends those replicas"
        )
    check_redis(database.id, redis)
    return _check_contract(database.contract)


def check_redis(own: UUID | None, redis: UUID | None) -> None:
    """Raises WrongInstallationError for a Redis of another installation than one's own, where both are known."""
    if own is not None and redis is not None and redis != own:
        raise WrongInstallationError(
            f"this is installation {own}, but REDIS_URL is in use by installation {redis}: give each a Redis database "
            f"of its own, as in redis://host:port/1, or delete the key 'rollway:{REDIS_KEY}' if the other one is gone"
        )


def _check_contract(contract: int) -> str | None:
    if contract < CONTRACT:
        raise WrongInstallationError(
            f"the database has contract {contract} and this release needs {CONTRACT}: run 'rollway migrate' first"
        )
    if contract > CONTRACT + 1:
        raise WrongInstallationError(
            f"the database has contract {contract}, and this release knows no newer one than {CONTRACT + 1}: upgrade it"
        )
    if contract > CONTRACT:
        return f"the database has contract {contract} and this release {CONTRACT}: upgrade it soon"
    return None
