"""The account that `rollway up` makes for replicas, and whom it leaves it to."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.process.accounts import REPLICA_USER
from stack.home.settings import ServerSettings, load_settings
from stack.parts.account import made_replica_user
from stack.parts.processes import ProcessSetting, rollway_processes
from tests.support.stack.small_stack import SmallStack, made_home

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAKES ACCOUNTS, SO THIS IS NOT TESTED HERE")


def is_known() -> bool:
    return any(entry.pw_name == REPLICA_USER for entry in pwd.getpwall())


@pytest.fixture
def no_account() -> Iterator[None]:
    """The machine without the account, as far as this test may; one that was there before stays."""
    had = is_known()
    yield
    if not had and is_known():
        subprocess.run(["/usr/sbin/userdel", REPLICA_USER], check=True)


@pytest.fixture
def everybody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout and a Python that another user may read."""
    monkeypatch.chdir("/")
    monkeypatch.setattr("sys.executable", "/bin/sh")


@needs_root
@pytest.mark.usefixtures("no_account", "everybody_reads")
def test_root_gets_an_account_once_that_has_no_home_and_no_shell() -> None:
    said: list[str] = []
    assert [made_replica_user(said.append), made_replica_user(said.append)] == [REPLICA_USER] * 2
    account = pwd.getpwnam(REPLICA_USER)
    assert (account.pw_dir, Path(account.pw_shell).name, account.pw_uid > 0) == ("/nonexistent", "nologin", True)
    assert all("run as the user rollway-replica" in line for line in said)


@needs_root
def test_where_another_user_could_read_nothing_replicas_run_as_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "python"
    shutil.copy("/bin/sh", program)
    tmp_path.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(program))
    said: list[str] = []
    assert made_replica_user(said.append) == ""
    assert said[0].startswith("run as root: another user may not enter")


@needs_root
@pytest.mark.usefixtures("everybody_reads")
def test_where_no_account_can_be_made_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    if is_known():
        pytest.skip("THE ACCOUNT IS HERE ALREADY")
    monkeypatch.setattr("stack.parts.account._MAKE", ("/nowhere/useradd",))
    said: list[str] = []
    assert made_replica_user(said.append) == ""
    assert "no account of their own can be made for them" in said[0]


def test_a_worker_is_told_the_account_of_its_home(tmp_path: Path) -> None:
    small = SmallStack(made_home(tmp_path), environ={"ROLLWAY_REPLICA_USER": "model"})
    small.up()
    small.down()
    settings = load_settings(small.home)
    assert settings
    assert settings.replica_user == "model", "it is kept for the next start, and no account was made"
    for user in ("", "model"):
        servers = replace(ServerSettings(), replica_user=user)
        setting = ProcessSetting(
            home=small.home, database_url="", redis_url="", workers=1, servers=servers, with_envoy=False
        )
        parts = {part.name: part.env for part in rollway_processes(setting)}
        assert parts["worker1"]["ROLLWAY_REPLICA_USER"] == user
