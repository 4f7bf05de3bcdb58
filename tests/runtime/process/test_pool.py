"""Accounts of deployments: each has one number, and nobody else has it."""

import json
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.process import account_pool
from runtime.process.account_pool import AccountPool, NoAccountError, Ranges
from tests.support.workers.runtimes import ROOT

SMALL = Ranges(range(50_000, 50_012), 4)


@pytest.fixture
def small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_pool, "POOLS", (SMALL,))


def pool_of(tmp_path: Path, name: str) -> AccountPool:
    home = tmp_path / name
    home.mkdir(exist_ok=True)
    return AccountPool(home, tmp_path / "registry")


def test_a_deployment_has_one_number_and_no_other_one_has_it(tmp_path: Path) -> None:
    ours, theirs = pool_of(tmp_path, "ours"), pool_of(tmp_path, "theirs")
    numbers = [ours.number_of("web"), ours.number_of("other"), theirs.number_of("web"), theirs.reserve()]
    assert len(set(numbers)) == 4
    assert pool_of(tmp_path, "ours").number_of("web") == numbers[0], "a later worker finds it again"
    assert (ours.has(numbers[0], "web"), ours.has(numbers[0], "other"), theirs.has(numbers[0], "web")) == (
        True,
        False,
        False,
    )
    assert not {entry.pw_uid for entry in pwd.getpwall()} & set(numbers)


def test_workers_that_ask_at_once_are_given_the_same(tmp_path: Path) -> None:
    home, registry = tmp_path / "home", tmp_path / "registry"
    home.mkdir()
    code = f"""
from pathlib import Path
from runtime.process.account_pool import AccountPool
print([AccountPool(Path({str(home)!r}), Path({str(registry)!r})).number_of(f"web-{{n}}") for n in range(20)])
"""
    asked = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT) for _ in range(3)]
    said = {process.communicate()[0] for process in asked}
    assert len(said) == 1
    assert len(set(json.loads(said.pop()))) == 20


@pytest.mark.usefixtures("small_pool")
def test_a_home_that_needs_more_takes_another_range(tmp_path: Path) -> None:
    ours, theirs = pool_of(tmp_path, "ours"), pool_of(tmp_path, "theirs")
    assert [ours.number_of("a"), theirs.number_of("a")] == [50_000, 50_004]
    assert [ours.number_of(name) for name in "bcd"] == [50_001, 50_002, 50_008], "the last of each is for a trial"
    assert theirs.reserve() == 50_007


@pytest.mark.usefixtures("small_pool")
def test_a_range_whose_home_is_gone_is_given_again_when_there_is_no_other(tmp_path: Path) -> None:
    for name in ("gone", "stays", "too"):
        pool_of(tmp_path, name).number_of("web")
    with pytest.raises(NoAccountError, match="all 3 ranges of accounts of this machine are taken"):
        pool_of(tmp_path, "late").number_of("web")
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    assert pool_of(tmp_path, "late").number_of("web") == 50_000
    (tmp_path / "elsewhere").rename(tmp_path / "gone")
    (tmp_path / "too").rename(tmp_path / "away")
    assert pool_of(tmp_path, "gone").number_of("web") == 50_008, "it comes back and shares with nobody"


@pytest.mark.usefixtures("small_pool")
def test_a_machine_that_has_forgotten_leaves_a_home_its_numbers(tmp_path: Path) -> None:
    """As after a container was made anew around a home that stays."""
    pool_of(tmp_path, "first").number_of("web")
    number = pool_of(tmp_path, "second").number_of("web")
    for taken in (tmp_path / "registry").glob("5*"):
        taken.unlink()
    assert pool_of(tmp_path, "second").number_of("web") == number
    assert pool_of(tmp_path, "second").number_of("other") == number + 1


def test_numbers_of_users_and_groups_of_this_machine_are_left_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = max(entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid < 60_000)
    start = last - last % 4
    monkeypatch.setattr(account_pool, "POOLS", (Ranges(range(start, start + 8), 4),))
    assert pool_of(tmp_path, "home").number_of("web") == start + 4


@pytest.mark.parametrize(
    ("mapped", "expected"),
    [([range(2**32)], 0x7000_0000), ([range(65_536)], 30_000), ([range(1000), range(1000, 20_000)], None)],
)
def test_a_container_that_has_few_users_is_given_of_those(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: list[range], expected: int | None
) -> None:
    monkeypatch.setattr(account_pool, "_mapped", lambda: mapped)
    if expected is None:
        with pytest.raises(NoAccountError, match="may not use the users from 30,000 on"):
            pool_of(tmp_path, "home").number_of("web")
        return
    number = pool_of(tmp_path, "home").number_of("web")
    assert number >= expected
    assert any(number in users for users in mapped)


def test_what_is_noted_and_cannot_be_read_is_said_and_not_given_anew(tmp_path: Path) -> None:
    ours = pool_of(tmp_path, "home")
    (ours.home / "accounts.json").write_text('{"web": 7')
    with pytest.raises(NoAccountError, match=r"accounts\.json cannot be used"):
        ours.number_of("web")
    assert not ours.has(7, "web")


def test_a_machine_where_nothing_can_be_noted_gives_none(tmp_path: Path) -> None:
    (tmp_path / "registry").write_text("")
    with pytest.raises(NoAccountError, match="registry cannot be written"):
        pool_of(tmp_path, "home").number_of("web")
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["accounts.lock"]
