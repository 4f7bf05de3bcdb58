"""What Tab offers after `rollway ...` in bash, zsh and fish."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from domain.installation.tokens import Role
from tests.cli.conftest import Rollway
from tests.support.people.people_api import People
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import make_deployment

SHELLS = ("bash", "zsh", "fish")
PROGRAM = Path(sys.executable).with_name("rollway")


def offered(shell: str, *words: str) -> list[str]:
    """The names alone, without what the shell shows beside them."""
    typed = " ".join(("rollway", *words))
    asked = {
        "bash": {"COMP_WORDS": typed, "COMP_CWORD": str(len(words))},
        "zsh": {"_TYPER_COMPLETE_ARGS": typed},
        "fish": {"_TYPER_COMPLETE_ARGS": typed, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }
    environment = {**os.environ, **asked[shell], "_ROLLWAY_COMPLETE": f"complete_{shell}"}
    done = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.stderr == ""
    if shell == "zsh":
        return re.findall(r'"([^"]*)":"', done.stdout)
    return [line.partition("\t")[0] for line in done.stdout.split("\n") if line]


@pytest.mark.usefixtures("servers")
def test_tab_completes_names_of_deployments_and_revisions(engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    assert [offered(shell, "activate", "web", "v") for shell in SHELLS] == [["v2", "v1"]] * 3
    assert offered("bash", "scale", "we") == ["web"]
    assert offered("bash", "undo", "web", "--to", "v1") == ["v1"]
    assert offered("bash", "activate", "api", "v") == []


def test_tab_completes_over_http_what_the_token_is_for(
    engine: Engine, remote_server: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    make_deployment(engine, "■", n=1, name="wiki")
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("ROLLWAY_URL", remote_server.server.url)
    monkeypatch.setenv("ROLLWAY_TOKEN", remote_server.token(Role.VIEWER, "web"))
    assert offered("bash", "plan", "w") == ["web"]
    assert offered("fish", "plan", "web", "v") == ["v2", "v1"]
    assert offered("zsh", "plan", "web", "v1") == ["v1"]
    assert offered("bash", "plan", "wiki", "v") == []
    monkeypatch.setenv("ROLLWAY_TOKEN", "wrong")
    assert offered("bash", "plan", "w") == []


@pytest.mark.usefixtures("servers")
def test_a_name_that_is_none_is_told_with_one_that_is_close(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING, name="orders")
    assert rollway("status", "ordres").err.endswith("; did you mean orders?\n")
    assert rollway("scale", "rders", "3").err.endswith("; did you mean orders?\n")
    assert "did you mean" not in rollway("status", "gone").err
    assert rollway("activate", "orders", "v22").err.endswith("; did you mean v2?\n")
    refused = json.loads(rollway("status", "ordres", "--json").out)["error"]
    detail = {"deployment": "ordres", "near": "orders"}
    assert (refused["code"], refused["detail"]) == ("deployment_not_found", detail)


def test_nobody_is_told_a_name_that_the_token_is_not_for(
    rollway: Rollway, engine: Engine, remote_server: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_deployment(engine, "■", n=1, name="orders")
    make_deployment(engine, "■", n=1, name="wiki")
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("ROLLWAY_URL", remote_server.server.url)
    monkeypatch.setenv("ROLLWAY_TOKEN", remote_server.token(Role.VIEWER, "wiki"))
    assert "orders" not in rollway("status", "ordres").err


NO_DATABASE = "postgresql://nobody@127.0.0.1:1/none"


@pytest.mark.parametrize(("shell", "url"), [*((shell, NO_DATABASE) for shell in SHELLS), ("bash", "not a url")])
def test_tab_says_nothing_where_no_database_answers(monkeypatch: pytest.MonkeyPatch, shell: str, url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1")
    assert offered(shell, "scale", "we") == []
