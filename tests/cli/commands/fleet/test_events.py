"""`rollway events --follow`, from the database and from the server's stream."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from domain.installation.tokens import Role
from tests.cli.conftest import Rollway
from tests.support.people.people_api import serving_people
from tests.support.rows.deployments import ask, make_deployment

pytestmark = pytest.mark.usefixtures("servers")


@pytest.fixture(params=["database", "http"])
def where(
    request: pytest.FixtureRequest, database: str, redis_url: str, tmp_path: Path
) -> Iterator[dict[str, str | None]]:
    """The environment of a command that asks that server."""
    if request.param == "database":
        yield {}
        return
    with serving_people(database, redis_url, tmp_path) as people:
        secret = people.token(Role.VIEWER)
        yield {"ROLLWAY_URL": people.server.url, "ROLLWAY_TOKEN": secret, "DATABASE_URL": None, "REDIS_URL": None}


@contextmanager
def following(where: dict[str, str | None], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "cli.main", "events", "--follow", *arguments]
    environment = {name: value for name, value in {**os.environ, **where}.items() if value is not None}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def heard(running: subprocess.Popen[str], kind: str, **values: object) -> dict[str, Any]:
    """The next event of this kind with these values."""
    assert running.stdout
    for line in running.stdout:
        event: dict[str, Any] = json.loads(line)
        about = event["data"].get("name") or event["data"]["deployment"]
        assert about == "web", "of the others nothing is told"
        if event["event"] == kind and values.items() <= event["data"].items():
            return event
    raise AssertionError(running.stderr and running.stderr.read())


def test_what_changes_is_told_a_line_each_and_what_was_missed_comes_first(
    engine: Engine, where: dict[str, str | None]
) -> None:
    make_deployment(engine, "■■■")
    make_deployment(engine, "■■■", name="shop")
    with following(where, "web", "--json", "--last-event-id", "none") as running:
        assert heard(running, "deployment")["data"]["picture"] == "■■■"
        for name in ("shop", "web"):
            ask(engine, "scale", deployment=name, desired_replicas=4, actor="ann")
        assert heard(running, "history", actor="ann")["data"]["message"] == "from 3 to 4 replicas"
        last = heard(running, "deployment", desired_replicas=4)["id"]
        running.send_signal(signal.SIGINT)
        assert (running.wait(20), running.stderr and running.stderr.read()) == (0, "")
    ask(engine, "scale", deployment="web", desired_replicas=5, actor="bob")
    with following(where, "web", "--json", "--last-event-id", last) as running:
        heard(running, "history", actor="bob")
        assert running.stdout
        running.stdout.close()
        ask(engine, "scale", deployment="web", desired_replicas=6, actor="eve")
        assert running.wait(20) == 0
        assert (running.stderr and running.stderr.read()) == ""


def test_people_read_who_did_what_and_how_it_is_then(engine: Engine) -> None:
    make_deployment(engine, "■■|◇")
    with following({}, "--last-event-id", "none") as running:
        assert running.stdout
        assert "  web  " in running.stdout.readline()
        ask(engine, "scale", deployment="web", desired_replicas=4, actor="ann", reason="a feast")
        assert "web  ann: scale: from 3 to 4 replicas: a feast" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 0


def test_without_follow_and_for_an_unknown_name_it_says_what_to_type(rollway: Rollway) -> None:
    assert (rollway("events").code, "rollway history" in rollway("events").err) == (2, True)
    unknown = rollway("events", "nope", "--follow")
    assert (unknown.code, "there is no deployment called nope" in unknown.err) == (1, True)
