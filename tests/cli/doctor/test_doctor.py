"""`rollway doctor` asks its questions, and tells what was found and what mends it; --sizes shows the tables too."""

import json
import os
import re
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cli.catalog import COMMANDS
from cli.doctor.findings import QUESTIONS
from cli.terminal.exits import ExitCode
from domain.installation.settings import Retention
from runtime.process.record import RecordFolder
from stack.home.folder import find_home
from tasks.hosts.heartbeat import Heartbeat
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import HERE, ask, make_deployment, write
from tests.support.rows.past import cut, gone_routes, how_many, records

pytestmark = pytest.mark.usefixtures("servers")
METRICS = Path(__file__).parents[3] / "docs/reference/metrics.md"


def test_every_question_names_commands_and_a_metric_that_there_are() -> None:
    named = {word for question in QUESTIONS for word in re.findall(r"'rollway ([\w-]+)", question.mends)}
    assert named <= set(COMMANDS)
    metrics = {question.metric for question in QUESTIONS if question.metric}
    assert metrics <= set(re.findall(r"`(\w+)`", METRICS.read_text(encoding="utf-8")))
    assert [question.asks for question in QUESTIONS if not question.asks.endswith("?")] == []


@pytest.mark.usefixtures("healthy_installation")
def test_where_all_is_well_every_question_finds_nothing(rollway: Rollway) -> None:
    told = json.loads(rollway("doctor", "--json").out)
    assert told["ok"] is True
    assert [(row["question"], row["found"]) for row in told["asked"]] == [(each.asks, []) for each in QUESTIONS]
    said = rollway("doctor")
    assert (said.code, said.out.splitlines()[0]) == (
        0,
        "0 impossible states; 0 receipts broken; 0 decisions replayed, 0 differ, 0 are lost",
    )


@pytest.mark.decides_wrongly
@pytest.mark.usefixtures("host")
def test_what_is_impossible_makes_doctor_fail_with_what_mends_it(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■")
    write(engine, "UPDATE routes SET address = NULL")
    said = rollway("doctor")
    assert said.code == ExitCode.REFUSED
    found, mends, counts, *_ = said.out.splitlines()
    assert re.fullmatch(r"✗ web: route \S+ is healthy, but has no address \(running_without_address\)", found)
    assert (mends, counts.split(";")[0]) == (f"  → {QUESTIONS[0].mends}", "1 impossible states")
    told = json.loads(rollway("doctor", "--json").out)
    assert (told["ok"], [finding["code"] for finding in told["findings"]]) == (False, ["running_without_address"])
    assert told["asked"][0] == {
        "question": "Is there a state that should be impossible?",
        "found": [found.removeprefix("✗ ")],
        "mends": QUESTIONS[0].mends,
        "exit": 1,
        "metric": "rollway_impossible_states_total",
    }


@pytest.mark.usefixtures("healthy_installation")
def test_who_holds_up_all_starts_of_this_machine_is_named(rollway: Rollway) -> None:
    with RecordFolder(find_home(os.environ).root).locked():
        sentence = f"process {os.getpid()} "
        assert f"✗ {sentence}" in rollway("doctor").out
        shown = rollway("status").out
    assert f"! {sentence}" in shown
    assert "no replica of this host is started or stopped until it lets go" in shown
    assert sentence not in rollway("status").out


@pytest.mark.decides_wrongly
@pytest.mark.usefixtures("host")
def test_findings_of_two_questions_stand_in_one_list_for_programs(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■")
    write(engine, "UPDATE routes SET address = NULL")
    write(
        engine,
        "INSERT INTO receipts (rollout_id, deployment_id, number, text, sha256)"
        " SELECT gen_random_uuid(), id, 1, '{}', repeat('0', 64) FROM deployments",
    )
    told = json.loads(rollway("doctor", "--json").out)
    assert [finding["code"] for finding in told["findings"]] == ["running_without_address", "receipt_chain_broken"]
    assert [len(row["found"]) for row in told["asked"] if row["found"]] == [1, 1]


def test_doctor_says_what_will_be_cut_of_each_table_as_it_then_is(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "■■■")
    records(engine, made, 260, days=40)
    gone_routes(engine, made, 80, days=8)
    ask(engine, "scale", deployment="web", desired_replicas=3)
    write(engine, "UPDATE commands SET created_at = now() - interval '8 days'")
    write(engine, "ANALYZE")
    told = {table["name"]: table for table in json.loads(rollway("doctor", "--sizes", "--json").out)["tables"]}
    assert {name: table["to_cut"] for name, table in told.items() if table["to_cut"]} == {
        "deployment_history": 60,
        "routes": 30,
        "commands": 1,
    }
    assert (told["deployment_history"]["rows"], told["routes"]["rows"]) == (260, 83)
    assert told["deployment_history"]["bytes"] > 16_384
    shown = rollway("doctor", "--sizes").out
    assert [line.split()[0] for line in shown.splitlines() if line.split()[-1] == "60"] == ["deployment_history"]
    assert "TABLE" not in rollway("doctor").out
    assert "tables" not in json.loads(rollway("doctor", "--json").out)
    cut(engine, Retention())
    assert (how_many(engine, "deployment_history"), how_many(engine, "routes")) == (200, 53)


@pytest.mark.usefixtures("host")
def test_a_host_whose_secrets_are_for_every_deployment_is_named_where_there_are_several(
    rollway: Rollway, engine: Engine
) -> None:
    wide = ["file:/run/secrets", "command:/usr/bin/vault"]
    Heartbeat(engine, HERE, "127.0.0.1", "nobody", secrets_for_all=wide).show()
    make_deployment(engine, "■", name="web")
    assert json.loads(rollway("doctor", "--json").out)["secrets_for_all"] == {}
    make_deployment(engine, "■", name="shop")
    said = rollway("doctor")
    told = f"host {HERE} gives every deployment what is in file:/run/secrets, command:/usr/bin/vault"
    assert told in said.out.splitlines()
    assert "file:/run/secrets/{deployment}" in said.out
    Heartbeat(engine, HERE, "127.0.0.1", "nobody").show()
    assert told not in rollway("doctor").out
