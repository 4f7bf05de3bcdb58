"""A home that others may write in is refused by every command: its files say which processes to end."""

import os
from pathlib import Path

import pytest

from stack.home.folder import Home, find_home
from stack.stack_errors import StackError
from stack.stack_status import export_urls

SOMEBODY_ELSE = 65534


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    return made


def test_a_home_of_our_own_is_found_whether_it_exists_yet_or_not(home: Home, tmp_path: Path) -> None:
    assert find_home({"ROLLWAY_HOME": str(home.root)}) == home
    assert find_home({"ROLLWAY_HOME": str(tmp_path / "new")}).root == tmp_path / "new"


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o770])
def test_a_home_that_others_may_write_in_is_refused_in_one_sentence(home: Home, mode: int) -> None:
    home.root.chmod(mode)
    with pytest.raises(StackError, match=r"may be written by others than its owner: run 'chmod go-w' on it, or set"):
        find_home({"ROLLWAY_HOME": str(home.root)})


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o750])
def test_that_others_may_read_it_is_their_owners_business(home: Home, mode: int) -> None:
    home.root.chmod(mode)
    assert find_home({"ROLLWAY_HOME": str(home.root)}) == home


def test_a_home_of_somebody_else_is_refused_in_one_sentence(home: Home) -> None:
    if os.geteuid() != 0:
        pytest.skip("NOT RUN AS ROOT, SO NO FOLDER CAN BE GIVEN TO SOMEBODY ELSE AND THIS IS NOT TESTED")
    os.chown(home.root, SOMEBODY_ELSE, SOMEBODY_ELSE)
    environ = {"ROLLWAY_HOME": str(home.root), "DATABASE_URL": "postgresql://u:p@h/db", "REDIS_URL": "redis://h"}
    for ask in (find_home, export_urls):
        with pytest.raises(StackError, match=rf"{home.root} belongs to user {SOMEBODY_ELSE} and you are user 0"):
            ask(environ)
