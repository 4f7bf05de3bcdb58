"""`rollway open`: the address of the page that logs in once."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Engine

from db.access_tokens import use_login_link
from db.connection.transactions import in_transaction
from domain.installation.tokens import Role, Token
from tests.cli.conftest import Rollway

pytestmark = pytest.mark.usefixtures("servers")


@pytest.fixture
def page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack of another process says where its page is."""
    monkeypatch.setattr("cli.commands.fleet.token.page_address", lambda: "http://rollway.localhost:7072")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)


def whose(engine: Engine, url: str) -> Token | None:
    secret = urlsplit(url.strip()).fragment.removeprefix("link=")
    return in_transaction(engine, lambda connection: use_login_link(connection, secret))


@pytest.mark.usefixtures("page_runs")
def test_the_address_logs_in_as_the_user_and_as_whom_is_named(
    rollway: Rollway, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.commands.fleet.token.os_user", lambda: "Ann_B")
    first = rollway("open")
    assert first.out.startswith("http://rollway.localhost:7072/login#link=")
    assert "logs in once, within a minute" in first.err
    token = whose(engine, first.out)
    assert token is not None
    assert (token.name, token.role, token.is_for_all) == ("ann-b", Role.ADMIN, True)
    assert token.expires_at is not None
    rollway("token", "create", "zoe", "--role", "viewer")
    document = json.loads(rollway("open", "--print", "--as", "zoe", "--json").out)
    assert (set(document), document["opened"]) == ({"url", "ends_at", "opened"}, False)
    named = whose(engine, document["url"])
    assert named is not None
    assert (named.name, named.role) == ("zoe", Role.VIEWER)
    assert len(json.loads(rollway("token", "list", "--json").out)) == 2
    unknown = rollway("open", "--as", "nobody")
    assert (unknown.code, "there is no token nobody" in unknown.err) == (1, True)


@pytest.mark.usefixtures("page_runs")
def test_a_browser_is_opened_where_there_is_one_unless_it_is_only_to_be_printed(
    rollway: Rollway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', encoding="utf-8")
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    rollway("open", "--print")
    assert not opened.exists()
    said = rollway("open")
    assert opened.read_text(encoding="utf-8") == said.out
    assert "The page is opened" in said.err


def test_without_a_page_here_the_way_to_one_is_named(rollway: Rollway) -> None:
    away = rollway("open")
    assert (away.code, "'rollway up' starts it" in away.err) == (3, True)


def test_over_http_it_is_the_token_that_asks(laptop: Rollway, engine: Engine) -> None:
    said = laptop("open", "--print")
    assert said.code == 0, said.err
    token = whose(engine, said.out)
    assert token is not None
    refused = laptop("open", "--as", "zoe")
    assert (refused.code, "--as is for the database" in refused.err) == (2, True)
