"""Which versions of Postgres and Redis will do, and what is said of a Redis that throws messages away."""

import pytest

from domain.installation.contract import (
    UnfitServerError,
    doubt_about_memory,
    refuse_encoding,
    refuse_old_postgres,
    refuse_old_redis,
)


@pytest.mark.parametrize("version", [170000, 170006, 180003, 190001])
def test_postgres_17_and_newer_will_do(version: int) -> None:
    refuse_old_postgres(version, "db:5432/rollway")


@pytest.mark.parametrize(("version", "called"), [(160013, "16"), (169999, "16"), (150018, "15"), (90624, "9")])
def test_an_older_postgres_is_refused_by_its_address_and_version(version: int, called: str) -> None:
    with pytest.raises(UnfitServerError) as refused:
        refuse_old_postgres(version, "db:5432/rollway")
    assert refused.value.message == f"PostgreSQL at db:5432/rollway is {called}; Rollway needs 17 or newer"


@pytest.mark.parametrize("version", ["6.2.0", "6.2.14", "7.0.15", "10.0.1", "255.255.255", "8.0.rc1"])
def test_redis_6_2_and_newer_will_do(version: str) -> None:
    refuse_old_redis(version, "cache:6379/0")


@pytest.mark.parametrize("version", ["6.0.16", "5.0.14", "2.8.24"])
def test_an_older_redis_is_refused_by_its_address_and_version(version: str) -> None:
    with pytest.raises(UnfitServerError) as refused:
        refuse_old_redis(version, "cache:6379/0")
    assert refused.value.message == f"Redis at cache:6379/0 is {version}; Rollway needs 6.2 or newer"


def test_only_a_redis_that_refuses_writes_when_it_is_full_is_above_doubt() -> None:
    assert doubt_about_memory("noeviction", "cache:6379/0") is None
    assert doubt_about_memory("allkeys-lru", "cache:6379/0") == (
        "Redis at cache:6379/0 has maxmemory-policy allkeys-lru, which throws messages away when its memory is full: "
        "set it to noeviction"
    )


def test_a_database_keeps_text_as_utf_8_or_is_refused_with_the_way_to_make_one_that_does() -> None:
    refuse_encoding("UTF8", "db:5432/rollway")
    with pytest.raises(UnfitServerError) as refused:
        refuse_encoding("SQL_ASCII", "db:5432/rollway")
    assert refused.value.message == (
        "the database at db:5432/rollway keeps text as SQL_ASCII; Rollway needs one in UTF8: "
        "make it with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
    )
