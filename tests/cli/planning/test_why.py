"""`rollway why` against a real Postgres."""

import json
import re
from functools import partial
from typing import Any, LiteralString

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.reports import RouteReport, apply_reports
from domain.model.states import RouteStatus
from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PROVISIONING, READY, ROLLING_BACK
from tests.support.pictures.policies import BLUE_GREEN
from tests.support.rows.deployments import HERE, ask, make_deployment, start_all, write
from tests.support.rows.releases import apply, file
from tests.support.rows.windows import freeze
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

pytestmark = pytest.mark.usefixtures("servers")

UP: LiteralString = "INSERT INTO hosts (name, address) VALUES (%s, 'h')"
DOWN: LiteralString = "INSERT INTO hosts (name, address, down_since) VALUES (%s, 'h', clock_timestamp())"


def told(rollway: Rollway, engine: Engine, name: str = "web") -> dict[str, Any]:
    """As a program reads it, with a worker that has just been heard of."""
    write(engine, "UPDATE deployments SET due_at = NULL")
    document: dict[str, Any] = json.loads(rollway("why", name, "--json").out)
    return document


def test_one_sentence_says_what_is_waited_for_and_since_when_and_until_when(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING, status_for=8)
    write(engine, UP, HERE)
    write(engine, "UPDATE deployments SET due_at = NULL")
    write(engine, "UPDATE routes SET healthy_at = created_at + interval '12 seconds' WHERE status = 'healthy'")
    ended = rollway("why", "web")
    assert ended.code == 0
    assert re.match(
        f"web waits for route {made.routes[2].hex[-8:]} on host here, starting for [^,]+, usually 12 s [(]drawn[)], "
        "since 1 not ready > 0 in this wave, 0 ready < 3 wanted and 2 serving - 1 < 2 to keep; in (30|29) min.* the "
        "rollout goes back",
        ended.out,
    )
    assert len(ended.out.splitlines()) == 1


def test_a_sick_replica_that_answers_callers_is_said_to(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "■▲", n=2, status=READY, status_for=100)
    write(engine, UP, HERE)
    query: LiteralString = "UPDATE routes SET kept_until = clock_timestamp() + interval '50 seconds' WHERE id = %s"
    write(engine, query, made.routes[1])
    write(engine, "UPDATE deployments SET due_at = NULL")
    sentence = f"web waits for route {made.routes[1].hex[-8:]} on host here, unhealthy, but answering callers, for 1"
    assert rollway("why", "web").out.startswith(sentence)
    assert "▲ unhealthy, but answering" in rollway("status", "web").out
    write(engine, "UPDATE routes SET kept_until = NULL")
    assert "answering" not in rollway("status", "web").out


def test_the_settings_that_come_with_a_rollout_are_said_with_the_moment(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, policy=BLUE_GREEN)
    apply(engine, file("v3", traffic={"hosts": ["new.example.com"], "protocol": "http2"}))
    expected = "its rollout brings settings: with the promotion new.example.com, replicas speak HTTP/2"
    assert expected in rollway("why", "web").out.splitlines()
    assert told(rollway, engine)["brings"] == "with the promotion new.example.com, replicas speak HTTP/2"
    ask(engine, "abort", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    assert told(rollway, engine)["brings"] == ""


def test_a_program_gets_the_parts_of_the_sentence(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    write(engine, UP, HERE)
    document = told(rollway, engine)
    assert document["waits_for"] == "route"
    assert document["name"] == made.routes[2].hex[-8:]
    assert document["usually_seconds"] is None
    assert 1700 < document["left_seconds"] <= 1800
    assert document["then"] == "the rollout goes back: the timeout of 1800 s has passed"


def test_a_host_that_is_down_is_named(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    write(engine, UP, "another")
    write(engine, DOWN, HERE)
    document = told(rollway, engine)
    assert (document["waits_for"], document["name"]) == ("host", HERE)


def test_a_secret_that_a_host_lacks_is_named(rollway: Rollway, engine: Engine) -> None:
    spec = {"command": ["sleep", "60"], "env": {"KEY": {"secret": "env:KEY"}}}
    make_deployment(engine, "■■|◇", status=PROVISIONING, spec=spec)
    write(engine, UP, HERE)
    write(
        engine,
        "INSERT INTO host_secrets (host, reference, asked_by, fault) VALUES (%s, 'env:KEY', 'web', 'it is not set')",
        HERE,
    )
    document = told(rollway, engine)
    assert (document["waits_for"], document["name"]) == ("secret", HERE)
    assert "env:KEY: it is not set" in document["sentence"]


def test_without_a_worker_that_is_said_first_of_all(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    document = told(rollway, engine)
    assert document["waits_for"] == "worker"
    assert "no worker is known yet" in document["sentence"]


def test_who_waits_for_nothing_is_told_of_a_missing_worker_too(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY)
    assert "note: no worker is known yet" in rollway("why", "web").err
    write(engine, UP, HERE)
    assert rollway("why", "web").err == ""


def test_a_way_back_has_no_deadline_and_is_told_none(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■◇|", status=ROLLING_BACK)
    write(engine, "UPDATE rollouts SET back_reason = '3 new replicas failed'")
    page = " ".join(rollway("status", "web").out.split())
    assert "0 of 3 failures; turned back, without a deadline: 3 new replicas failed" in page
    assert " left" not in page
    assert "; it goes back: 3 new replicas failed; " in rollway("why", "web").out


def test_of_a_pause_it_says_whose_it_is_and_why(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    assert rollway("pause", "web", "--reason", "the night is over", "--actor", "ada").code == 0
    assert "paused by ada: the night is over" in rollway("why", "web").out
    assert rollway("resume", "web").code == 0
    assert "ada" not in rollway("why", "web").out


def test_at_rest_status_says_how_the_last_rollout_ended_and_who_wanted_it(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY)
    assert "last rollout" not in rollway("status", "web").out
    make_deployment(engine, "■■|◇", name="api", status=PROVISIONING)
    assert rollway("abort", "api", "--reason", "too slow", "--actor", "ada").code == 0
    for _ in range(3):
        run_until_quiet(coordinator_without_redis(engine))
        start_all(engine)
    page = " ".join(rollway("status", "api").out.split())
    assert re.search(r"last rollout to v2 by test, rolled back \d s ago: aborted by ada: too slow", page)


def test_failing_starts_say_when_the_next_is_tried(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "■■|", status=PROVISIONING)
    write(engine, UP, HERE)
    failing = "failed_starts = 3, failed_revision_id = %s, last_failed_at = clock_timestamp()"
    write(engine, f"UPDATE deployments SET {failing}", made.v2)
    document = told(rollway, engine)
    assert document["waits_for"] == "time"
    assert document["then"] == (
        "the next step: creating 2 new (2 live + 2 ≤ 4); 3 starts failed in a row, so only 1 is tried"
    )
    assert 6 < document["left_seconds"] <= 8


def test_what_another_revision_failed_with_is_no_cause_of_this_one(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇◇", status=PROVISIONING)
    write(engine, UP, HERE)
    report = RouteReport(
        made.routes[2], made.id, RouteStatus.PROVISIONING, RouteStatus.FAILED, reason="exit code 3", log_tail=""
    )
    in_transaction(engine, partial(apply_reports, reports=[report]))
    for revision, is_cause in ((made.v1, False), (made.v2, True)):
        write(engine, "UPDATE deployments SET failed_revision_id = %s", revision)
        assert ("; the last start failed: exit code 3" in told(rollway, engine)["sentence"]) is is_cause


def test_at_rest_nothing_is_waited_for(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY)
    assert told(rollway, engine)["waits_for"] == "nothing"


def test_an_unknown_name_is_one_helpful_sentence(rollway: Rollway) -> None:
    ended = rollway("why", "nobody")
    assert (ended.code, ended.out) == (1, "")
    assert "there is no deployment called nobody; 'rollway status' lists those that exist" in ended.err


def test_what_came_otherwise_than_planned_is_named_while_the_rollout_is_under_way(
    rollway: Rollway, engine: Engine
) -> None:
    make_deployment(engine, "|■■■")
    write(engine, "UPDATE routes SET healthy_at = created_at + interval '1 second'")
    ask(engine, "activate_revision", deployment="web", revision="v1", actor="ann")
    coordinator = coordinator_without_redis(engine)
    for _ in range(2):
        run_until_quiet(coordinator)
        start_all(engine)
    write(engine, "UPDATE rollout_steps SET at = at - interval '41 seconds' WHERE step_no = 1")
    (deviation,) = told(rollway, engine)["deviations"]
    assert re.match(r"wave 1 took \d+ s, planned 1\.", deviation)
    assert f"different from the plan: {deviation}" in rollway("why", "web").out
    assert json.loads(rollway("status", "web", "--json").out)["deviations"] == [deviation]
    assert f"not as planned {deviation}" in " ".join(rollway("status", "web").out.split())


def test_what_a_freeze_holds_names_the_freeze(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■|", status=PROVISIONING)
    write(engine, UP, HERE)
    freeze(engine, "xmas", deployments=["web"])
    run_until_quiet(coordinator_without_redis(engine))
    said = rollway("why", "web").out
    assert said.startswith("web is not going forward: held by the freeze xmas until")
    assert "; in " in said


def test_a_certificate_that_is_not_renewed_is_told_of_until_it_is(rollway: Rollway, engine: Engine) -> None:
    web = make_deployment(engine, "■", n=1, status=READY)
    missing = """
        INSERT INTO certificates (deployment_id, kind, name, names, fault)
        VALUES (%s, 'acme', 'web.example.com', '{}', 'the authority is away')
    """
    write(engine, missing, web.id)
    assert "certificate of web.example.com: the authority is away" in rollway("why", "web").out
    write(engine, "UPDATE certificates SET fault = NULL")
    assert told(rollway, engine)["certificates"] == []
