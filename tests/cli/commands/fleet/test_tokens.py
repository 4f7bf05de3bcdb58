"""`rollway token`: the new token, its lifetime, and the lines about it."""

import json
from datetime import UTC, datetime
from functools import partial

import pytest

from db.access_tokens import all_tokens, begin_session, session_id
from db.connection.transactions import in_transaction
from tests.cli.conftest import Rollway
from tests.support.rows.databases import engine_on

pytestmark = pytest.mark.usefixtures("servers")


@pytest.mark.parametrize("role", ["viewer", "releaser", "operator"])
def test_a_token_below_admin_ends_unless_its_maker_says_that_it_does_not(rollway: Rollway, role: str) -> None:
    usual = json.loads(rollway("token", "create", "usual", "--role", role, "--json").out)
    ends = datetime.fromisoformat(usual["expires_at"])
    assert 89 < (ends - datetime.now(UTC)).total_seconds() / 86_400 < 91
    short = rollway("token", "create", "short", "--role", role, "--days", "7")
    assert "It ends on 20" in short.err
    forever = rollway("token", "create", "forever", "--role", role, "--forever")
    assert "It never expires; use --days to set an expiry." in forever.err
    both = rollway("token", "create", "both", "--role", role, "--forever", "--days", "7")
    assert (both.code, "--forever and --days do not go together" in both.err) == (2, True)
    listed = {token["name"]: token["expires_at"] for token in json.loads(rollway("token", "list", "--json").out)}
    assert listed["forever"] is None
    assert set(listed) == {"usual", "short", "forever"}


def test_an_admins_token_says_that_it_has_no_end(rollway: Rollway) -> None:
    assert "It never expires; use --days to set an expiry." in rollway("token", "create", "root", "--role", "admin").err


def test_who_is_logged_in_is_listed_and_logged_out(rollway: Rollway, database: str) -> None:
    assert rollway("token", "sessions").out == "Nobody is logged in to the page.\n"
    engine = engine_on(database)
    for name in ("ann", "bob"):
        rollway("token", "create", name)
        (token,) = (each for each in in_transaction(engine, all_tokens) if each.name == name)
        in_transaction(engine, partial(begin_session, secret=f"first of {name}", token=token))
        in_transaction(engine, partial(begin_session, secret=f"second of {name}", token=token))
    engine.dispose()
    listed = json.loads(rollway("token", "sessions", "--json").out)
    assert sorted(session["token"] for session in listed) == ["ann", "ann", "bob", "bob"]
    assert session_id("first of ann") in rollway("token", "sessions").out
    ended = rollway("token", "log-out", "ann", "--session", session_id("first of ann")[:6])
    assert ended.out == "ann: 1 session ended\n"
    assert json.loads(rollway("token", "log-out", "ann", "--json").out) == {"token": "ann", "ended": 1}
    assert [session["token"] for session in json.loads(rollway("token", "sessions", "--json").out)] == ["bob", "bob"]
