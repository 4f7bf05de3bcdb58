"""`rollway plan --with` and `replay` against a real Postgres: what they show; they touch nothing."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import ask, make_deployment, read, start_all, write
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

pytestmark = pytest.mark.usefixtures("servers")


def rolled_out(engine: Engine) -> str:
    """A whole rollout of web to v2; the id of it."""
    coordinator = coordinator_without_redis(engine)
    make_deployment(engine, "■■■")
    ask(engine, "activate_revision", deployment="web", revision="v2")
    for _ in range(5):
        run_until_quiet(coordinator)
        start_all(engine)
    run_until_quiet(coordinator)
    (rollout,) = read(engine, "SELECT id, outcome FROM rollouts")
    assert rollout["outcome"] == "completed"
    return str(rollout["id"])


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("max_surge", "--with must be NAME=VALUE"),
        ("max_surge=[", "--with max_surge"),
        ("max_surge=-1", "max_surge"),
        ("strategy=sometimes", "policy.strategy: must be one of"),
        ("replicas=many", "replicas: must be a number of replicas, such as 3"),
        ("failures=-1", "failures: must be a number of replicas, such as 3"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_with_code_2(
    rollway: Rollway, engine: Engine, setting: str, sentence: str
) -> None:
    make_deployment(engine, "■■|■", status=PROVISIONING)
    refused = rollway("plan", "web", "--with", setting)
    assert refused.code == 2
    assert sentence in refused.err


def test_a_plan_supposes_other_settings_and_more_failures(rollway: Rollway, engine: Engine, tmp_path: Path) -> None:
    make_deployment(engine, "■■|■", status=PROVISIONING)
    before = read(engine, "SELECT * FROM rollouts")
    assert "never more than 6 live" in rollway("plan", "web", "--with", "max_surge=3").out
    failed = json.loads(rollway("plan", "web", "--with", "failures=3", "--json").out)
    assert (failed["ends_ready"], failed["waves"][-1]["picture"]) == (False, "■■■|")  # it goes back
    assert rollway("plan", "web", "--with", "replicas=9", "--with", "max_surge=9").out.startswith("web: v1 → v2, 9 ")
    file = tmp_path / "web.yaml"
    file.write_text("deployment: new\nreplicas: 2\nrevision: {command: sleep 60}\n")
    assert rollway("plan", "-f", str(file), "--with", "replicas=4").out.startswith("new: new-")
    assert read(engine, "SELECT * FROM rollouts") == before


def test_a_replay_shows_every_step_with_the_same_decision_as_stored(rollway: Rollway, engine: Engine) -> None:
    rollout = rolled_out(engine)
    shown = rollway("replay", "web")
    assert shown.code == 0
    assert shown.out.splitlines()[0] == ("web: v1 → v2, completed; 4 of 4 decisions come out as they are stored")
    assert "■■■|" in shown.out
    (step,) = json.loads(rollway("replay", rollout, "--at", "2", "--json").out)["steps"]
    assert (step["step_no"], step["picture"], step["same"]) == (2, "■■|■", True)
    in_full = rollway("replay", rollout, "--at", "1").out
    assert in_full.count("drain") == 2
    assert "create 1" in in_full


def test_a_decision_that_comes_out_otherwise_is_told_with_code_1(rollway: Rollway, engine: Engine) -> None:
    rolled_out(engine)
    verdict = (
        "UPDATE rollout_steps SET decision = jsonb_set(decision, '{verdict}', to_jsonb(%s::text)) WHERE step_no = 2"
    )
    write(engine, verdict, "skipped")
    shown = rollway("replay", "web")
    write(engine, verdict, "need_retry")
    assert shown.code == 1
    assert shown.out.count("DIFFERS") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["replay", "web"], 1, "web has had no rollout yet"),
        (["replay", "nothing"], 1, "there is no deployment called nothing"),
        (["replay", "0198c2f3-6b1e-7c70-a3f5-3d1c6c1f0b2a"], 1, "there is no rollout 0198c2f3"),
        (["plan", "web", "--with", "failures=1"], 1, "there is no rollout"),
    ],
)
def test_what_is_not_there_is_refused_in_a_sentence(
    rollway: Rollway, engine: Engine, arguments: list[str], code: int, sentence: str
) -> None:
    make_deployment(engine, "■■■")
    refused = rollway(*arguments)
    assert refused.code == code
    assert sentence in refused.err


def test_a_step_that_is_not_on_record_is_refused_with_those_that_are(rollway: Rollway, engine: Engine) -> None:
    rolled_out(engine)
    refused = rollway("replay", "web", "--at", "9")
    assert refused.code == 2
    assert "its steps are 1 to 4" in refused.err
