"""The account under which `rollway up` runs replicas, what prevents it, and which accounts it refuses."""

import os
import pwd
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.show.status import missing_walls
from db.views.fleet_views import SignsOfLife
from runtime.process.account_pool import REGISTRY, AccountPool
from runtime.process.accounts import EACH, POSTGRES_USER, REPLICA_USER
from stack.home.folder import Home
from stack.home.server_settings import Ports, ServerSettings, choose_settings, load_settings
from stack.parts.processes import ProcessSetting, rollway_processes
from stack.parts.replica_accounts import advice, choose_replica_user, refuse_replica_users, what_stands_in_the_way
from stack.stack_errors import StackError
from tests.support.stack.small_stack import SmallStack, made_home
from tests.support.workers.runtimes import given_back

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT GIVES ACCOUNTS, SO THIS IS NOT TESTED HERE")


@pytest.fixture
def stack_home(tmp_path: Path) -> Iterator[Home]:
    made = made_home(tmp_path)
    with given_back(made.root):
        yield made


@pytest.fixture
def everybody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout and a Python that another user may read."""
    monkeypatch.setattr("stack.parts.replica_accounts.project_root", lambda: Path("/"))
    monkeypatch.setattr("stack.parts.replica_accounts._PYTHON", "/bin/sh")


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the virtual environment's Python, which only its owner may enter."""
    folder = tmp_path / "closed"
    (folder / "bin").mkdir(parents=True)
    shutil.copy("/bin/sh", folder / "bin" / "python")
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "python").symlink_to(folder / "bin" / "python")
    folder.chmod(0o700)
    monkeypatch.setattr("stack.parts.replica_accounts.project_root", lambda: Path("/"))
    monkeypatch.setattr("stack.parts.replica_accounts._PYTHON", str(tmp_path / "venv" / "python"))
    return folder


def first_closed(folder: Path) -> Path:
    return next(path for path in (*reversed(folder.parents), folder) if not path.stat().st_mode & 0o001)


@needs_root
@pytest.mark.usefixtures("everybody_reads")
def test_root_gives_each_deployment_an_account_and_writes_no_user_down(stack_home: Home) -> None:
    users, said = len(pwd.getpwall()), list[str]()
    assert choose_replica_user(stack_home, "", said.append) == EACH
    assert len(pwd.getpwall()) == users
    assert str(stack_home.root) in [str(path.readlink()) for path in REGISTRY.iterdir() if path.is_symlink()]
    assert [line.split(",")[0] for line in said] == ["run as an account for each deployment"]


@needs_root
@pytest.mark.usefixtures("everybody_reads")
@pytest.mark.parametrize(
    ("last", "now", "sentence"),
    [
        ("", EACH, "run as an account for each deployment"),
        (REPLICA_USER, EACH, "run as an account for each deployment"),
        (None, None, "run as root, as before; ROLLWAY_REPLICA_USER=@deployment gives each deployment an account"),
        ("model", "model", ""),
        ("root", "root", ""),
    ],
)
def test_it_is_asked_again_while_nobody_is_named(
    stack_home: Home, last: str | None, now: str | None, sentence: str
) -> None:
    said: list[str] = []
    assert choose_replica_user(stack_home, last, said.append) == now
    assert [line[: len(sentence)] for line in said] == [sentence] * bool(sentence)


@needs_root
@pytest.mark.parametrize("last", ["", REPLICA_USER, None])
def test_what_stands_in_the_way_is_said_with_what_mends_it(closed: Path, stack_home: Home, last: str | None) -> None:
    opened = first_closed(closed)
    said: list[str] = []
    assert choose_replica_user(stack_home, last, said.append) == last
    (line,) = said
    assert line.startswith(f"run as {last or 'root'}")
    assert f"another user may not enter {opened}" in line
    assert f"'chmod o+x {opened}' lets it pass" in line


def test_who_is_not_root_hears_what_is_missing(stack_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    said: list[str] = []
    assert choose_replica_user(stack_home, "", said.append) == ""
    assert said[0].endswith(
        "only root gives replicas accounts of their own: 'sudo rollway up' does, or let them be containers"
    )


@needs_root
@pytest.mark.usefixtures("everybody_reads")
def test_where_no_account_can_be_had_it_is_said(
    stack_home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("stack.parts.replica_accounts.AccountPool", lambda home: AccountPool(home, tmp_path / "file"))
    assert "cannot be written" in what_stands_in_the_way(stack_home)


@needs_root
@pytest.mark.parametrize("variable", ["ROLLWAY_REPLICA_USER", "ROLLWAY_REPLICA_USERS"])
def test_a_user_that_has_a_part_of_the_stack_is_refused_at_up(stack_home: Home, variable: str) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    with pytest.raises(StackError, match=f"{variable} names 'nobody', who runs PostgreSQL: .* Leave it out"):
        refuse_replica_users(stack_home, {variable: "nobody"}, nobody)
    os.chown(stack_home.valkey, nobody, -1)
    with pytest.raises(StackError, match=f"{variable} names 'nobody', who owns {stack_home.valkey}"):
        refuse_replica_users(stack_home, {variable: "nobody"}, 0)
    os.chown(stack_home.valkey, 0, -1)
    refuse_replica_users(stack_home, {variable: "nobody"}, 0)
    refuse_replica_users(stack_home, {variable: "root"}, 0)


@needs_root
def test_a_stack_is_not_started_with_the_account_of_its_postgres_for_replicas(stack_home: Home) -> None:
    small = SmallStack(stack_home, environ={"ROLLWAY_REPLICA_USERS": POSTGRES_USER})
    with pytest.raises(StackError, match=f"names {POSTGRES_USER!r}, who runs PostgreSQL"):
        small.up()
    assert not stack_home.servers_file.exists(), "what is refused is not remembered"


def test_a_worker_is_told_the_account_of_its_home(tmp_path: Path) -> None:
    small = SmallStack(made_home(tmp_path), environ={"ROLLWAY_REPLICA_USER": "model"})
    small.up()
    small.down()
    settings = load_settings(small.home)
    assert settings
    assert settings.replica_user == "model", "it is kept for the next start"
    for user in ("", "model", None):
        servers = replace(ServerSettings(), replica_user=user)
        setting = ProcessSetting(home=small.home, database_url="", redis_url="", workers=1, servers=servers, envoys=0)
        parts = {part.name: part.env for part in rollway_processes(setting)}
        assert parts["worker1"]["ROLLWAY_REPLICA_USER"] == (user or "")


NOW = datetime(2026, 1, 1, tzinfo=UTC)
SIGNS = SignsOfLife(NOW, NOW, NOW, NOW, unwalled=("vm",), proxies=0, telling=0)


@needs_root
def test_status_and_doctor_say_what_stands_in_the_way_here(
    closed: Path, stack_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = SmallStack(stack_home, environ={"ROLLWAY_REPLICA_USER": ""})
    monkeypatch.setenv("ROLLWAY_HOME", str(small.home.root))
    said = "processes on vm run as the workers' own user and can read what steers the fleet"
    assert [sentence.partition(";")[0] for sentence in missing_walls(SIGNS)] == [said]
    try:
        small.up()
        (sentence,) = missing_walls(SIGNS)
        assert f"here another user may not enter {first_closed(closed)}" in sentence
        small.said.clear()
        small.up()
        assert f"another user may not enter {first_closed(closed)}" in " ".join(small.texts()), (
            "a second up says it too"
        )
        monkeypatch.setattr("stack.parts.replica_accounts._PYTHON", "/bin/sh")
        (sentence,) = missing_walls(SIGNS)
        assert sentence.endswith("'rollway restart' gives each deployment an account")
        small.restart()
        settings = load_settings(small.home)
        assert settings
        assert settings.replica_user == EACH
    finally:
        small.down()
    assert list(missing_walls(replace(SIGNS, unwalled=()))) == []


def test_who_keeps_replicas_as_root_on_purpose_hears_how_to_change_that(stack_home: Home) -> None:
    choose_settings(stack_home, Ports(), lambda _: None)
    assert advice(stack_home) == "", "no stack runs there"
    stack_home.state_file.write_text("")
    expected = "'rollway down' and 'ROLLWAY_REPLICA_USER=@deployment rollway up'" if os.geteuid() == 0 else "only root"
    assert expected in advice(stack_home) or "another user may not enter" in advice(stack_home)
