"""With ROLLWAY_URL commands need neither database nor Redis, and say and end as they do with both."""

import json
import re
from pathlib import Path

import pytest
from sqlalchemy import Engine

from domain.installation.tokens import Role
from tests.cli.conftest import Ended, Rollway
from tests.support.people.people_api import People
from tests.support.people.promoted import green_waits
from tests.support.pictures.pictures import READY
from tests.support.rows.deployments import ask, make_deployment, read

WEB = """
deployment: shop
replicas: 3
revision: {name: v1, command: sleep 60, env: {KEY: s3cret}}
policy: {strategy: rolling_update, spec: {max_surge: 1}}
traffic: {hosts: [shop.example.com]}
"""


READS = (
    ("status", "web"),
    ("status", "web", "--json"),
    ("history", "web", "-n", "2"),
    ("history", "web", "--json"),
    ("history", "--json"),
    ("routes", "web"),
    ("routes", "web", "--all", "--json"),
    ("hosts", "--json"),
    ("subscriptions", "--json"),
    ("status", "nope"),
    ("history", "nope", "--json"),
    ("logs", "nope"),
    ("why", "web"),
    ("why", "nope"),
    ("plan", "web"),
    ("plan", "web", "v2", "--json"),
    ("plan", "web", "v9"),
    ("plan", "web", "--with", "failures=1", "--json"),
    ("replay", "web", "--json"),
    ("receipt", "web"),
    ("receipt", "web", "--json"),
    ("receipt", "nope"),
    ("traffic",),
    ("traffic", "web", "--json"),
    ("traffic", "nope"),
    ("proxies",),
    ("proxies", "--json"),
    ("policy", "web"),
    ("autoscaling", "web"),
    ("revisions", "list", "web"),
    ("revisions", "show", "web", "v1"),
    ("revisions", "show", "web", "v9"),
    ("revisions", "diff", "web", "v1", "v2"),
    ("revisions", "diff", "web", "a", "b", "--json"),
    ("revisions", "diff", "web", "a"),
    ("revisions", "diff", "web", "a", "v9"),
    ("diff", "-f", "FILE"),
    ("apply", "-f", "FILE", "--dry-run"),
    ("plan", "-f", "FILE"),
    ("freezes",),
    ("groups", "--json"),
    ("rolling-update", "web", "v9"),
    ("rolling-update", "web", "--image", "web:2"),
    ("rolling-update", "web", "--no-wait"),
    ("rolling-update", "web", "--rollback", "v9"),
    ("activate", "web", "v9"),
    ("activate", "web", "v2", "--wait", "--timeout", "0"),
    ("activate", "web", "v2", "--wait", "--timeout", "0", "--json"),
    ("abort", "nope", "--json"),
    ("scale", "WEB", "3"),
)


SLEEP = {"command": ["sleep", "60"]}


def without_times(ended: Ended) -> Ended:
    """What differs from one moment to the next."""
    moment = re.compile(r'"now": "[^"]*"|"version": \d+|\d+(\.\d+)? (s|min|h)\b')
    out, err = (re.sub(" +", " ", moment.sub("", said)) for said in (ended.out, ended.err))
    return Ended(ended.code, out, err)


@pytest.mark.usefixtures("servers")
def test_what_commands_say_and_how_they_end_is_the_same_over_http(
    rollway: Rollway, laptop: Rollway, engine: Engine, tmp_path: Path
) -> None:
    green_waits(engine)
    for name, value in (("a", "s3cret"), ("b", "another")):
        ask(engine, "add_revision", deployment="web", name=name, spec={**SLEEP, "env": {"A": value, "B": "same"}})
    file = tmp_path / "web.yaml"
    file.write_text("deployment: web\nrevision: {name: c, command: sleep 60, env: {KEY: s3cret}}\nactivate: false\n")
    for line in READS:
        arguments = [str(file) if word == "FILE" else word for word in line]
        told = rollway(*arguments)
        assert without_times(laptop(*arguments)) == without_times(told), arguments
        assert "s3cret" not in told.out
    listed = json.loads(laptop("status", "--json").out)
    assert [deployment["name"] for deployment in listed["deployments"]] == ["web"]
    assert "asked: the server at 127.0.0.1:" in laptop("status").out


@pytest.mark.usefixtures("servers")
def test_a_laptop_drives_a_deployment_and_its_token_is_the_actor(
    rollway: Rollway, laptop: Rollway, engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(WEB)
    applied = laptop("apply", "-f", str(file), "--reason", "first day")
    assert (applied.code, applied.err.splitlines()[1:]) == (0, [])
    assert applied.out.splitlines()[-1] == "shop: revision v1 activated"
    assert laptop("apply", "-f", str(file)).out == rollway("apply", "-f", str(file)).out == "shop: nothing to do\n"
    file.write_text(WEB.replace("s3cret", "another"))
    refused = laptop("apply", "-f", str(file))
    assert (refused.code, refused.err) == (1, rollway("apply", "-f", str(file)).err)
    make_deployment(engine, "■■■", status=READY, name="web")
    for verb in (
        ("activate", "web", "v2"),
        ("pause", "web"),
        ("resume", "web"),
        ("abort", "web"),
        ("scale", "web", "5"),
    ):
        assert laptop(*verb).code == 0, verb
    assert laptop("destroy", "web", "--yes").code == 0
    actors = read(engine, "SELECT DISTINCT actor FROM deployment_history WHERE phase <> 'check_pending'")
    assert {row["actor"] for row in actors} >= {"laptop"}
    assert "s3cret" not in laptop("status", "shop", "--json").out


def test_another_command_is_rolled_out_with_values_that_the_laptop_never_sees(laptop: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY, spec={**SLEEP, "env": {"A": "s3cret"}})
    line = ("rolling-update", "web", "--no-wait", "--", "sleep", "61")
    begun, again = laptop(*line), laptop(*line)
    assert (begun.code, again.code) == (0, 0), begun.err
    assert re.fullmatch(r"rollout of web to (web-[0-9a-f]{8}) started\n", begun.out)
    name = begun.out.split()[4]
    assert again.out == f"web is already rolling out {name}\n"
    (stored,) = read(engine, "SELECT spec FROM revisions WHERE name = %s", name)
    assert (stored["spec"]["command"], stored["spec"]["env"]) == (["sleep", "61"], {"A": "s3cret"})
    assert read(engine, "SELECT 1 FROM commands WHERE payload::text LIKE '%%s3cret%%'") == []


def test_what_is_wrong_is_said_in_a_sentence(
    rollway: Rollway, remote_server: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWAY_URL", remote_server.server.url)
    assert "ROLLWAY_URL is set and ROLLWAY_TOKEN is not" in rollway("status").err
    monkeypatch.setenv("ROLLWAY_TOKEN", remote_server.token(Role.VIEWER, name="guest"))
    assert "this needs the role admin, and the token guest has viewer" in rollway("forget-host", "rack-7").err
    monkeypatch.setenv("ROLLWAY_TOKEN", "wrong")
    refused = rollway("status")
    assert (refused.code, "unknown, revoked or expired" in refused.err) == (1, True)
    monkeypatch.setenv("ROLLWAY_URL", "rollway.example.com")
    assert (rollway("status").code, "must be an address such as https://" in rollway("status").err) == (2, True)
    remote_server.server.end(kill=True)
    monkeypatch.setenv("ROLLWAY_URL", remote_server.server.url)
    away = rollway("status")
    assert (away.code, f"the server at 127.0.0.1:{remote_server.server.port}" in away.err) == (3, True)
