"""Database, home and Redis of one installation, and a release that knows the database's contract: the whole table."""

import os
import re
from pathlib import Path
from uuid import UUID

import pytest

from domain.installation.contract import (
    CONTRACT,
    WRONG_INSTALLATION,
    Installation,
    WrongInstallationError,
    check,
    check_redis,
)

OURS, THEIRS = UUID(int=1), UUID(int=2)
DATABASE = Installation(OURS, CONTRACT)


def test_the_newest_migration_writes_the_contract_of_this_release() -> None:
    migrations = (Path(__file__).parents[3] / "migrations/versions").glob("*.sql")
    written = [re.findall(r"SET contract = ([0-9]+)", path.read_text(encoding="utf-8")) for path in migrations]
    assert max(int(number) for numbers in written for number in numbers) == CONTRACT


@pytest.mark.parametrize("home", [None, OURS])
@pytest.mark.parametrize("redis", [None, OURS])
def test_what_is_ours_or_nobodys_is_fine(home: UUID | None, redis: UUID | None) -> None:
    assert check(DATABASE, home, redis) is None


@pytest.mark.parametrize(
    ("home", "redis", "says"),
    [
        (THEIRS, None, r"replicas in ROLLWAY_HOME are of installation .*2: correct .* remove the file 'installation'"),
        (THEIRS, THEIRS, "ROLLWAY_HOME"),
        (OURS, THEIRS, r"REDIS_URL is in use by installation .*2: give each .* delete the key 'rollway:installation'"),
        (None, THEIRS, "REDIS_URL"),
    ],
)
def test_what_is_of_another_installation_is_refused_with_both_ways_out(
    home: UUID | None, redis: UUID | None, says: str
) -> None:
    with pytest.raises(WrongInstallationError, match=says):
        check(DATABASE, home, redis)


@pytest.mark.parametrize(("own", "redis"), [(None, THEIRS), (OURS, None), (OURS, OURS), (None, None)])
def test_who_has_no_database_compares_what_is_known(own: UUID | None, redis: UUID | None) -> None:
    check_redis(own, redis)


@pytest.mark.parametrize(
    ("ahead", "says"),
    [
        (-1, "refused: .*rollway migrate"),
        (0, "nothing"),
        (1, "warned: .*upgrade it soon"),
        (2, "refused: .*upgrade it$"),
    ],
)
def test_a_release_works_with_its_own_contract_and_with_the_next_one(ahead: int, says: str) -> None:
    try:
        warning = check(Installation(OURS, CONTRACT + ahead), OURS, OURS)
        told = f"warned: {warning}" if warning else "nothing"
    except WrongInstallationError as error:
        told = f"refused: {error.message}"
    assert re.match(says, told), told


def test_a_process_that_refuses_to_begin_ends_with_the_documented_exit_code() -> None:
    assert WRONG_INSTALLATION == os.EX_CONFIG
