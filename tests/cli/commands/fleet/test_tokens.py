"""`rollway token`: what is made, for how long, and what is said of it."""

import json
from datetime import UTC, datetime

import pytest

from tests.cli.conftest import Rollway

pytestmark = pytest.mark.usefixtures("servers")


@pytest.mark.parametrize("role", ["viewer", "releaser", "operator"])
def test_a_token_below_admin_ends_unless_its_maker_says_that_it_does_not(rollway: Rollway, role: str) -> None:
    usual = json.loads(rollway("token", "create", "usual", "--role", role, "--json").out)
    ends = datetime.fromisoformat(usual["expires_at"])
    assert 89 < (ends - datetime.now(UTC)).total_seconds() / 86_400 < 91
    short = rollway("token", "create", "short", "--role", role, "--days", "7")
    assert "It ends on 20" in short.err
    forever = rollway("token", "create", "forever", "--role", role, "--forever")
    assert "It has no end; --days gives it one." in forever.err
    both = rollway("token", "create", "both", "--role", role, "--forever", "--days", "7")
    assert (both.code, "--forever and --days do not go together" in both.err) == (2, True)
    listed = {token["name"]: token["expires_at"] for token in json.loads(rollway("token", "list", "--json").out)}
    assert listed["forever"] is None
    assert set(listed) == {"usual", "short", "forever"}


def test_an_admins_token_says_that_it_has_no_end(rollway: Rollway) -> None:
    assert "It has no end; --days gives it one." in rollway("token", "create", "root", "--role", "admin").err
