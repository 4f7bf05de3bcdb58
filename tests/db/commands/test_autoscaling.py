"""Autoscaling on Postgres: rules and pushed metrics as commands, and check_replica moving the count once."""

import math
from typing import Any, ClassVar, Self

import psycopg
import pytest
from sqlalchemy import Engine, event

from db.commands.autoscaling import store_and_mark, watched_deployments
from db.cycle.rules import store_values
from db.engine import database_now, in_transaction, transaction
from domain.autoscaling.judging import MetricValue
from domain.autoscaling.rule import AutoscalingRule
from domain.errors import DeploymentNotFoundError, InvalidInputError, RequestIdReusedError, StaleVersionError
from domain.handlers.check_replica import CheckReplicaHandler
from tests.support.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.deployments import Made, ask, drawn, make_deployment, mark, read, snapshot, start_all, write
from tests.support.pictures import PROVISIONING, READY, ROLLING_BACK, SCALING

UP: dict[str, Any] = {
    "metric": "queue",
    "source": "pushed",
    "comparator": ">",
    "threshold": 30,
    "step": 2,
    "max_replicas": 8,
}
DOWN: dict[str, Any] = {**UP, "comparator": "<", "threshold": 5, "step": -1}
SCRAPED: dict[str, Any] = {**UP, "source": "replicas", "metric": "busy", "aggregate": "max", "labels": {"q": "gpu"}}


def ruled(engine: Engine, *rules: dict[str, Any], picture: str = "■■■", name: str = "web", **made: Any) -> Made:
    """A deployment with rules, looked at once."""
    one = make_deployment(engine, picture, name=name, **made)
    ask(engine, "set_autoscaling_rules", deployment=name, rules=list(rules))
    write(engine, "UPDATE deployments SET due_at = NULL WHERE id = %s", one.id)
    return one


def push(engine: Engine, value: float, metric: str = "queue", **more: Any) -> dict[str, Any]:
    return ask(engine, "push_metric", deployment="web", metric=metric, value=value, **more).result


def check(engine: Engine) -> int:
    return coordinator_without_redis(engine).process_chunk(CheckReplicaHandler()).seen


def is_marked(engine: Engine) -> bool:
    return bool(read(engine, "SELECT 1 FROM deployments WHERE due_at <= clock_timestamp()"))


def scaled_before(engine: Engine, seconds: float) -> None:
    write(
        engine,
        "UPDATE deployments SET last_autoscaled_at = clock_timestamp() - %s * interval '1 second'",
        float(seconds),
    )


def test_a_pushed_metric_moves_the_count_once_and_the_replicas_follow(engine: Engine) -> None:
    made = ruled(engine, UP, DOWN)
    assert push(engine, 41.5) == {"deployment": "web", "metric": "queue", "value": 41.5, "fires": True}
    assert check(engine) == 1
    one = snapshot(engine, made.id)
    assert (one.status, one.desired_replicas) == (SCALING, 5)
    said = "queue is 41.5 > 30: from 3 to 5 replicas (at most 8)"
    (row,) = read(engine, "SELECT reason, clock_timestamp() - last_autoscaled_at AS ago FROM deployments")
    assert row["reason"] == said
    assert 0 <= row["ago"].total_seconds() < 10
    (record,) = read(engine, "SELECT * FROM deployment_history WHERE phase = 'check_replica'")
    assert (record["message"], record["actor"], record["result"]) == (said, "check_replica", "success")
    run_until_quiet(coordinator_without_redis(engine))
    start_all(engine)
    run_until_quiet(coordinator_without_redis(engine))
    assert (snapshot(engine, made.id).status, drawn(engine, made.id)) == (READY, "■■■■■")
    mark(engine, made.id)
    assert check(engine) == 1
    assert snapshot(engine, made.id).desired_replicas == 5


def test_the_cooldown_runs_on_the_clock_of_the_database(engine: Engine) -> None:
    made = ruled(engine, {**UP, "cooldown_seconds": 60})
    scaled_before(engine, 50)
    assert not push(engine, 50)["fires"]
    mark(engine, made.id)
    check(engine)
    (row,) = read(engine, "SELECT desired_replicas, reason, due_at - clock_timestamp() AS wait FROM deployments")
    assert row["desired_replicas"] == 3
    assert "but the cooldown runs until" in row["reason"]
    assert 5 < row["wait"].total_seconds() < 10.1
    scaled_before(engine, 61)
    assert push(engine, 50)["fires"]
    check(engine)
    assert snapshot(engine, made.id).desired_replicas == 5


def test_a_value_from_before_the_last_move_does_not_move_it_again(engine: Engine) -> None:
    made = ruled(engine, {**UP, "cooldown_seconds": 0})
    push(engine, 50)
    check(engine)
    write(engine, "UPDATE deployments SET desired_replicas = 3, lifecycle = 'ready', due_at = now()")
    check(engine)
    assert (snapshot(engine, made.id).status, snapshot(engine, made.id).desired_replicas) == (READY, 3)
    assert push(engine, 50)["fires"]


@pytest.mark.parametrize(
    ("picture", "status"), [("■■|■", PROVISIONING), ("■■|■", ROLLING_BACK), ("■■◇", SCALING), ("■■■", SCALING)]
)
def test_never_while_deploying_or_scaling(engine: Engine, picture: str, status: Any) -> None:
    made = ruled(engine, UP, picture=picture, status=status)
    assert not push(engine, 50)["fires"]
    assert not is_marked(engine)
    mark(engine, made.id)
    for handler in coordinator_without_redis(engine).handlers.values():
        coordinator_without_redis(engine).process_chunk(handler)
        if snapshot(engine, made.id).status == READY:
            break
    assert snapshot(engine, made.id).desired_replicas == 3
    assert read(engine, "SELECT last_autoscaled_at FROM deployments") == [{"last_autoscaled_at": None}]
    assert in_transaction(engine, watched_deployments).deployments == () or status == SCALING


def test_a_way_back_to_the_size_of_before_is_no_autoscaling(engine: Engine) -> None:
    made = ruled(engine, UP, picture="■■|■", status=ROLLING_BACK)
    write(engine, "UPDATE rollouts SET desired_at_start = 4, ceiling = 9")
    mark(engine, made.id)
    run_until_quiet(coordinator_without_redis(engine))
    assert snapshot(engine, made.id).desired_replicas == 4
    assert snapshot(engine, made.id).last_autoscaled_at is None


def test_an_old_value_fires_nothing_and_says_so(engine: Engine) -> None:
    made = ruled(engine, UP)
    push(engine, 50)
    write(engine, "UPDATE metric_values SET at = at - interval '31 seconds'")
    mark(engine, made.id)
    check(engine)
    (row,) = read(engine, "SELECT desired_replicas, reason FROM deployments")
    assert row["desired_replicas"] == 3
    assert row["reason"] == ("3 of 3 replicas are healthy; the value of queue is 31 s old, at most 30 s are allowed")


def test_a_size_that_a_person_chose_stays_until_a_rule_that_goes_that_way_fires(engine: Engine) -> None:
    made = ruled(engine, UP, DOWN)
    ask(engine, "scale", deployment="web", desired_replicas=20)
    write(engine, "UPDATE deployments SET lifecycle = 'ready', due_at = NULL")
    assert not push(engine, 50)["fires"]
    assert push(engine, 1)["fires"]
    assert snapshot(engine, made.id).desired_replicas == 20


def test_fewer_replicas_are_drained_within_the_budget(engine: Engine) -> None:
    made = ruled(engine, DOWN)
    push(engine, 0)
    run_until_quiet(coordinator_without_redis(engine))
    assert (snapshot(engine, made.id).status, drawn(engine, made.id)) == (READY, "■■")


def test_rules_are_replaced_all_at_once_and_their_values_go_with_them(engine: Engine) -> None:
    made = make_deployment(engine)
    done = ask(engine, "set_autoscaling_rules", deployment="web", rules=[UP, SCRAPED, DOWN], actor="ann")
    assert done.result["version"] == 2
    assert [one["metric"] for one in done.result["rules"]] == ["queue", "busy", "queue"]
    stored = snapshot(engine, made.id).rules
    assert stored == tuple(AutoscalingRule.model_validate(one) for one in (UP, SCRAPED, DOWN))
    push(engine, 7)
    assert [value.value for value in snapshot(engine, made.id).metrics] == [7]
    ask(engine, "set_autoscaling_rules", deployment="web", rules=[DOWN])
    assert [value.value for value in snapshot(engine, made.id).metrics] == [7]
    ask(engine, "set_autoscaling_rules", deployment="web", rules=[])
    assert snapshot(engine, made.id).rules == ()
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
    assert snapshot(engine, made.id).metrics[0].value == 1
    assert read(engine, "SELECT * FROM metric_values") != before
    with pytest.raises(RequestIdReusedError):
        push(engine, 51, request_id="p-1")


@pytest.mark.parametrize(
    ("task", "payload", "error", "words"),
    [
        ("set_autoscaling_rules", {"rules": [{**UP, "step": 0}]}, InvalidInputError, "rules.0: step must not be 0"),
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
    assert len(snapshot(engine, made.id).rules) == 2
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
    (one,) = in_transaction(engine, watched_deployments).deployments
    assert (one.id, one.desired_replicas, len(one.ruled.rules)) == (made.id, 3, 1)
    assert one.addresses == ("127.0.0.1:1",) * 2


def test_marking_leaves_alone_what_is_marked_or_held_or_not_ready(engine: Engine) -> None:
    ids = [ruled(engine, UP, name=name).id for name in ("a", "b", "c")]
    write(engine, "UPDATE deployments SET due_at = '2026-01-01' WHERE id = %s", ids[0])
    write(engine, "UPDATE deployments SET lifecycle = 'scaling' WHERE id = %s", ids[1])
    assert len(in_transaction(engine, lambda connection: store_and_mark(connection, {}, ids))) == 1
    (first,) = read(engine, "SELECT due_at FROM deployments WHERE id = %s", ids[0])
    assert (first["due_at"].year, first["due_at"].month) == (2026, 1)
    write(engine, "UPDATE deployments SET due_at = NULL")
    with transaction(engine) as connection:
        connection.execute("SELECT 1 FROM deployments WHERE id = %s FOR NO KEY UPDATE", (ids[2],))
        assert len(in_transaction(engine, lambda other: store_and_mark(other, {}, ids))) == 1


class CountingCursor(psycopg.Cursor[Any]):
    sent: ClassVar[list[str]] = []

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Self:
        if query != ";":  # the pool's ping
            self.sent.append(query)
        return super().execute(query, *arguments, **options)


def test_a_chunk_of_thirty_with_rules_takes_as_many_statements_as_one_without(engine: Engine) -> None:
    event.listen(engine, "connect", lambda connection, _: setattr(connection, "cursor_factory", CountingCursor))
    engine.dispose()
    counts: list[int] = []
    make_deployment(engine, name="without")
    for more in (0, 1, 29):
        for number in range(more):
            ruled(engine, UP, DOWN, name=f"w-{more}-{number}")
        write(engine, "UPDATE deployments SET due_at = now()")
        CountingCursor.sent.clear()
        assert check(engine) == {0: 1, 1: 2, 29: 31}[more]
        counts.append(len(CountingCursor.sent))
    assert counts == [5, 5, 5]


def test_a_rule_of_one_deployment_says_nothing_of_another(engine: Engine) -> None:
    web, api = ruled(engine, UP), ruled(engine, UP, name="api")
    push(engine, 50)
    mark(engine, web.id, api.id)
    check(engine)
    assert (snapshot(engine, web.id).desired_replicas, snapshot(engine, api.id).desired_replicas) == (5, 3)
    (reason,) = read(engine, "SELECT reason FROM deployments WHERE name = 'api'")
    assert reason["reason"] == "3 of 3 replicas are healthy; queue has no value yet"


def test_the_time_of_a_pushed_value_is_the_databases(engine: Engine) -> None:
    made = ruled(engine, UP)
    before = in_transaction(engine, database_now)
    push(engine, 1)
    assert before < snapshot(engine, made.id).metrics[0].at < in_transaction(engine, database_now)
