"""Servers that Rollway works with, and what is said of others: PostgreSQL 17, Redis 6.2 or a Valkey, noeviction."""

from domain.words.errors import RollwayError

POSTGRES_AT_LEAST = 17


REDIS_AT_LEAST = (6, 2)


MEMORY_POLICY = "noeviction"


class UnfitServerError(RollwayError):
    """Postgres or Redis does not do; the message names its address, what it is and what would do."""


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
    """A warning about a Redis that throws keys away when its memory is full; None when it refuses writes instead.

    A queue is a key like any other. It is no refusal: what must not be lost is in Postgres, and ticks repeat.
    """
    if policy == MEMORY_POLICY:
        return None
    return (
        f"Redis at {address} has maxmemory-policy {policy}, which throws messages away when its memory is full: "
        f"set it to {MEMORY_POLICY}"
    )
