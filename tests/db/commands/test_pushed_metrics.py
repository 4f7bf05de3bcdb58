"""Rules and pushed values as commands: what is kept of them, and which deployments they mark."""

import math
from typing import Any

import pytest
from sqlalchemy import Engine

from db.commands.autoscaling import store_and_mark, watched_deployments
from db.connection.transactions import database_now, in_transaction, transaction
from db.cycle.autoscaling_rules import store_values
from domain.autoscaling.rule import AutoscalingRule, MetricValue
from domain.commands.base import RequestIdReusedError, StaleVersionError
from domain.text.errors import DeploymentNotFoundError, InvalidInputError
from tests.support.pictures.autoscaling import DOWN, SCRAPED, UP, check, is_marked, push, ruled
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import ask, make_deployment, mark, read, snapshot, write


def test_rules_are_replaced_all_at_once_and_their_values_go_with_them(engine: Engine) -> None:
    made = make_deployment(engine)
    done = ask(engine, "set_autoscaling_rules", deployment="web", rules=[UP, SCRAPED, DOWN], actor="ann")
    assert done.result["version"] == 2
    assert [rule["metric"] for rule in done.result["rules"]] == ["queue", "busy", "queue"]
    stored = snapshot(engine, made.id).autoscaling.rules
    assert stored == tuple(AutoscalingRule.model_validate(rule) for rule in (UP, SCRAPED, DOWN))
    push(engine, 7)
    assert [value.value for value in snapshot(engine, made.id).autoscaling.metrics] == [7]
    ask(engine, "set_autoscaling_rules", deployment="web", rules=[DOWN])
    assert [value.value for value in snapshot(engine, made.id).autoscaling.metrics] == [7]
    ask(engine, "set_autoscaling_rules", deployment="web", rules=[])
    assert snapshot(engine, made.id).autoscaling.rules == ()
    assert read(engine, "SELECT 1 FROM metric_values UNION ALL SELECT 1 FROM autoscaling_rules") == []
    messages = read(engine, "SELECT message FROM deployment_history ORDER BY created_at")
    assert messages[0]["message"] == (
        'autoscaling: queue > 30: +2 (1 to 8); max of busy{q="gpu"} > 30: +2 (1 to 8); queue < 5: -1 (1 to 8)'
    )
    assert messages[-1]["message"] == "autoscaling: no rules"


def test_both_commands_do_their_work_once_for_each_request_id(engine: Engine) -> None:
    made = make_deployment(engine)
    for _ in range(2):
        done = ask(engine, "set_autoscaling_rules", request_id="r-1", deployment="web", rules=[UP])
        assert done.result["version"] == 2
    push(engine, 50, request_id="p-1")
    before = read(engine, "SELECT * FROM metric_values")
    push(engine, 1)
    assert push(engine, 50, request_id="p-1")["value"] == 50
    assert snapshot(engine, made.id).autoscaling.metrics[0].value == 1
    assert read(engine, "SELECT * FROM metric_values") != before
    with pytest.raises(RequestIdReusedError):
        push(engine, 51, request_id="p-1")


@pytest.mark.parametrize(
    ("task", "payload", "error", "words"),
    [
        ("set_autoscaling_rules", {"rules": [{**UP, "step": 0}]}, InvalidInputError, "rule 1: step must not be 0"),
        ("set_autoscaling_rules", {"rules": [UP] * 21}, InvalidInputError, "rules"),
        ("set_autoscaling_rules", {"rules": [UP], "expected_version": 9}, StaleVersionError, "version 2"),
        ("set_autoscaling_rules", {"rules": [UP], "deployment": "api"}, DeploymentNotFoundError, "api"),
        ("push_metric", {"metric": "queue", "value": math.nan}, InvalidInputError, "value"),
        ("push_metric", {"metric": "queue", "value": math.inf}, InvalidInputError, "value"),
        ("push_metric", {"metric": "queue", "value": "9"}, InvalidInputError, "value"),
        ("push_metric", {"metric": "busy", "value": 9}, InvalidInputError, "no rule of web with source 'pushed'"),
        ("push_metric", {"metric": "qeueu", "value": 9}, InvalidInputError, "reads qeueu"),
        ("push_metric", {"metric": "queue", "value": 9, "deployment": "api"}, DeploymentNotFoundError, "api"),
    ],
)
def test_a_refusal_changes_nothing(engine: Engine, task: str, payload: Any, error: Any, words: str) -> None:
    made = ruled(engine, UP, SCRAPED)
    with pytest.raises(error, match=words):
        ask(engine, task, **{"deployment": "web", **payload})
    assert len(snapshot(engine, made.id).autoscaling.rules) == 2
    assert read(engine, "SELECT 1 FROM metric_values") == []
    assert not is_marked(engine)


def test_a_push_marks_only_when_a_rule_fires(engine: Engine) -> None:
    made = ruled(engine, UP)
    assert not push(engine, 12)["fires"]
    assert not is_marked(engine)
    version = snapshot(engine, made.id).version
    assert push(engine, 31)["fires"]
    assert is_marked(engine)
    assert snapshot(engine, made.id).version == version


def test_a_value_never_goes_back_in_time_and_none_is_kept_that_no_rule_reads(engine: Engine) -> None:
    made = ruled(engine, UP)

    def store(series: str, value: float, seconds: float) -> int:
        def work(connection: Any) -> int:
            cursor = connection.cursor()
            at = cursor.execute("SELECT now() + %s * interval '1 second'", (float(seconds),)).fetchone()
            assert at is not None
            return store_values(cursor, [(made.id, MetricValue(series, value, at[0]))])

        return in_transaction(engine, work)

    assert [store("queue", 1, 0), store("queue", 2, -5), store("nobody reads it", 3, 0)] == [1, 0, 0]
    assert read(engine, "SELECT series, value FROM metric_values") == [{"series": "queue", "value": 1.0}]


def test_only_ready_deployments_with_rules_are_watched_with_the_addresses_that_serve(engine: Engine) -> None:
    made = ruled(engine, SCRAPED, picture="■■▲□◇")
    ruled(engine, UP, picture="■■|◇", name="rolls", status=PROVISIONING)
    ruled(engine, UP, name="gave-up")
    write(
        engine,
        "UPDATE deployments SET degraded_reason = 'x', retry_at = now() + interval '1 hour' WHERE name = 'gave-up'",
    )
    make_deployment(engine, name="without")
    (watched,), _ = in_transaction(engine, watched_deployments)
    assert (watched.id, watched.desired_replicas, len(watched.rules)) == (made.id, 3, 1)
    assert watched.addresses == ["127.0.0.1:1"] * 2


def test_marking_leaves_alone_what_is_marked_or_held_or_not_ready(engine: Engine) -> None:
    ids = [ruled(engine, UP, name=name).id for name in ("a", "b", "c")]
    write(engine, "UPDATE deployments SET due_at = '2026-01-01' WHERE id = %s", ids[0])
    write(engine, "UPDATE deployments SET lifecycle = 'scaling' WHERE id = %s", ids[1])
    assert len(in_transaction(engine, lambda connection: store_and_mark(connection, {}, ids))) == 1
    (first,) = read(engine, "SELECT due_at FROM deployments WHERE id = %s", ids[0])
    assert (first["due_at"].year, first["due_at"].month) == (2026, 1)
    write(engine, "UPDATE deployments SET due_at = NULL")
    with transaction(engine) as connection:
        held = connection.execute("SELECT 1 FROM deployments WHERE id = %s FOR NO KEY UPDATE", (ids[2],))
        assert held.rowcount == 1
        assert len(in_transaction(engine, lambda other: store_and_mark(other, {}, ids))) == 1


def test_a_rule_of_one_deployment_says_nothing_of_another(engine: Engine) -> None:
    web, api = ruled(engine, UP), ruled(engine, UP, name="api")
    push(engine, 50)
    mark(engine, web.id, api.id)
    check(engine)
    assert (snapshot(engine, web.id).desired_replicas, snapshot(engine, api.id).desired_replicas) == (5, 3)
    (reason,) = read(engine, "SELECT reason FROM deployments WHERE name = 'api'")
    assert reason["reason"] == "3 of 3 replicas healthy; queue has no value yet"


def test_the_time_of_a_pushed_value_is_the_databases(engine: Engine) -> None:
    made = ruled(engine, UP)
    before = in_transaction(engine, database_now)
    push(engine, 1)
    assert before < snapshot(engine, made.id).autoscaling.metrics[0].at < in_transaction(engine, database_now)
