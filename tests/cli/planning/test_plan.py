"""`rollway plan` against a real Postgres: what it shows, what it refuses, and that it touches nothing."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import make_deployment, read

pytestmark = pytest.mark.usefixtures("servers")

FILE = """
deployment: web
replicas: 2
revision: {name: v3, command: sleep 60}
policy: {strategy: recreate}
"""


def everything(engine: Engine) -> list[object]:
    queries = ("SELECT * FROM deployments", "SELECT * FROM routes", "SELECT * FROM rollouts", "SELECT * FROM revisions")
    return [read(engine, query) for query in queries]


def test_the_plan_of_a_file_without_a_policy_says_what_goes_without(rollway: Rollway, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("deployment: web\nrevision: {command: python3 serve.py}\n")
    without = "without a policy a new revision replaces the old one without a rollout: no undo, no receipt"
    for words in (("plan",), ("apply", "--dry-run")):
        shown = rollway(*words, "-f", str(file))
        assert without in " ".join((shown.out + shown.err).split())
        assert "relative path" not in shown.out + shown.err  # it runs in the folder of its file


def test_a_plan_shows_the_waves_and_what_holds_and_touches_nothing(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■")
    before = everything(engine)
    shown = rollway("plan", "web", "v2")
    assert shown.code == 0
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert lines == [
        "web: v1 → v2, 3 replicas, rolling_update",
        (
            "never more than 4 live, never fewer than 2 of 3 serving, unless a replica fails on its own; "
            "at the busiest moment 2 replicas answer all requests: 1.5 times what each answers now"
        ),
        "at most 3 live, 5 with those that stop or are parked; at least 2 serving",
        "WAVE REPLICAS BEGINS TAKES WHAT",
        "1 ■■■| - - create 1, drain 1",
        "2 ■■|■ - - create 1, drain 1",
        "3 ■|■■ - - create 1, drain 1",
        "4 |■■■ - - all 3 replicas run the new revision",
        "! the revision has no health check: a replica counts as healthy once it has run for 3 s",
        "! no start of a replica of web is on record yet: no timing data",
    ]
    assert everything(engine) == before


def test_a_plan_of_a_file_is_that_of_what_applying_it_would_do(
    rollway: Rollway, engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(FILE)
    (first,) = json.loads(rollway("plan", "-f", str(file), "--json").out)
    assert [wave["create"] for wave in first["waves"]] == [0, 2, 0]
    make_deployment(engine, "■■■")
    (document,) = json.loads(rollway("plan", "-f", str(file), "--json").out)
    assert (document["from"], document["to"], document["desired"]) == ("v1", "v3", 2)
    assert [(wave["create"], wave["drain"]) for wave in document["waves"]] == [(0, 3), (2, 0), (0, 0)]


def test_without_a_revision_the_rest_of_a_rollout_is_planned(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■|■◇", status=PROVISIONING)
    document = json.loads(rollway("plan", "web", "--json").out)
    assert [(wave["create"], wave["drain"]) for wave in document["waves"]] == [(1, 1), (0, 0)]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "name a deployment and a revision, or a file with --file"),
        (["web", "v1", "-f", "web.yaml"], 2, "not both"),
        (["api"], 1, "there is no deployment called api"),
        (["web", "v9"], 1, "web has no revision v9"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_a_sentence(
    rollway: Rollway, engine: Engine, arguments: list[str], code: int, sentence: str
) -> None:
    make_deployment(engine, "■■■")
    refused = rollway("plan", *arguments)
    assert refused.code == code
    assert sentence in refused.err


def test_what_the_change_itself_would_be_refused_for_is_refused(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■|■◇", status=PROVISIONING)
    refused = rollway("plan", "web", "v1")
    assert refused.code == 1
    assert "is deploying v2" in refused.err
