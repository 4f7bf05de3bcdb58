"""As whom root's PostgreSQL runs."""

import os
import pwd
import signal
from pathlib import Path

import psutil
import pytest

from runtime.machine.identity import is_alive
from runtime.process.accounts import POSTGRES_USER
from stack.parts.postgres_account import NOBODY, choose_account, installed_tree
from tests.support.stack.small_stack import SmallStack, made_home
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")


def test_postgres_goes_on_as_who_it_is_until_it_is_stopped_and_moves_then(tmp_path: Path) -> None:
    """As where a release before ran it as nobody, whom other things run as."""
    small = SmallStack(made_home(tmp_path))
    data = small.home.postgres / "data"
    try:
        small.up()
        small.remember("a row")
        small.down()
        for path in (data, *data.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        _run_until_it_is_lost(small)
        assert psutil.Process(small.pid("postgres")).uids().real == NOBODY
        small.up()
        assert psutil.Process(small.pid("postgres")).uids().real == NOBODY, "it is taken over as it is"
        small.down()
        small.up()
        assert psutil.Process(small.pid("postgres")).uids().real == pwd.getpwnam(POSTGRES_USER).pw_uid
        assert small.remembered()[0] == ["a row"]
    finally:
        small.down()


def _run_until_it_is_lost(small: SmallStack) -> None:
    """With the supervisor of a release whose PostgreSQL is nobody, which was killed."""
    with pytest.MonkeyPatch.context() as before:
        before.setattr("stack.parts.postgres_account._made_account", lambda: NOBODY)
        small.up()
    supervisor = small.state().supervisor
    os.kill(supervisor.pid, signal.SIGKILL)
    eventually(lambda: not is_alive(supervisor))


def test_where_no_account_can_be_made_postgres_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stack.parts.postgres_account.POSTGRES_USER", "rollway-none")
    monkeypatch.setattr("stack.parts.postgres_account._MAKE", ("/nowhere/useradd",))
    assert choose_account(installed_tree()).user == NOBODY
