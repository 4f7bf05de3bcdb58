"""Which commands are answered by the server that ROLLWAY_URL names, and which say that they need the database."""

import shlex
from pathlib import Path

import pytest

from cli.catalog import COMMANDS
from cli.terminal.exits import ExitCode
from tests.cli.conftest import Rollway
from tests.support.people.people_api import People
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import make_deployment

HERE = {"demo", "init", "up", "down", "units", "envoy-bootstrap", "proxy-token", "redis-user", "scrape-config"}
"""They are about this machine, or print what its settings say."""
WITH_DATABASE = {"doctor", "slots", "migrate", "token"}
LINES = (
    "apply -f FILE",
    "diff -f FILE",
    "plan web v2",
    "replay web",
    "activate web v2 --supersede",
    "rolling-update web --no-wait -- sleep 61",
    "create api",
    "policy web --remove",
    "autoscaling web --remove",
    "push-metric web queue_length 17",
    "pause web",
    "resume web",
    "promote web",
    "abort web",
    "undo web",
    "retry web",
    "scale web 4",
    "restart web",
    "status web",
    "why web",
    "receipt web",
    "history web",
    "events web",
    "routes web",
    "revisions diff web v1 v2",
    "logs web",
    "probe web",
    "traffic web",
    "proxies",
    "hosts",
    "drain-host rack-7",
    "undrain-host rack-7",
    "forget-host rack-7",
    "subscribe ci --webhook ci",
    "unsubscribe ci",
    "subscriptions",
    "freeze night --cron '0 18 * * *' --for 8h --time-zone Europe/Berlin",
    "freezes",
    "unfreeze night",
    "group gpu web api --at-most 1",
    "groups",
    "ungroup gpu",
    "maintenance web on",
    "open --print",
    "destroy web --yes",
)
"""One of each command that is about deployments or the fleet."""


def test_every_command_but_those_that_need_the_database_is_answered_by_the_server(
    laptop: Rollway, remote_server: People, tmp_path: Path
) -> None:
    make_deployment(remote_server.engine, "■■|◇", status=PROVISIONING)
    file = tmp_path / "shop.yaml"
    file.write_text("deployment: shop\nrevision: {name: v1, command: sleep 60}\n")
    assert {line.split()[0] for line in LINES} == COMMANDS.keys() - HERE - WITH_DATABASE
    for line in LINES:
        ended = laptop(*(str(file) if word == "FILE" else word for word in shlex.split(line)))
        assert ended.code in {0, ExitCode.REFUSED, ExitCode.USAGE, ExitCode.DIFFERENT}, (line, ended.err)
        assert "needs the database" not in ended.err, line


@pytest.mark.parametrize("command", sorted(WITH_DATABASE))
def test_what_needs_the_database_says_so(laptop: Rollway, command: str) -> None:
    ended = laptop(command, *(["list"] if command == "token" else []))
    assert (ended.code, "needs the database" in ended.err) == (3, True)
