"""check_replica on Postgres: a fresh value moves the count once, and the replicas follow within the budget."""

from typing import Any

import pytest
from sqlalchemy import Engine

from db.commands.autoscaling import watched_deployments
from db.connection.transactions import in_transaction
from tests.support.pictures.autoscaling import DOWN, UP, check, is_marked, push, ruled, scaled_before
from tests.support.pictures.pictures import PROVISIONING, READY, ROLLING_BACK, SCALING
from tests.support.rows.deployments import ask, drawn, make_deployment, mark, read, snapshot, start_all, write
from tests.support.rows.sent_statements import sent_by
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet


def test_a_pushed_metric_moves_the_count_once_and_the_replicas_follow(engine: Engine) -> None:
    made = ruled(engine, UP, DOWN)
    assert push(engine, 41.5) == {"deployment": "web", "metric": "queue", "value": 41.5, "fires": True}
    assert check(engine) == 1
    deployment = snapshot(engine, made.id)
    assert (deployment.status, deployment.desired_replicas) == (SCALING, 5)
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
    assert in_transaction(engine, watched_deployments)[0] == [] or status == SCALING


def test_a_way_back_to_the_size_of_before_is_no_autoscaling(engine: Engine) -> None:
    made = ruled(engine, UP, picture="■■|■", status=ROLLING_BACK)
    write(engine, "UPDATE rollouts SET desired_at_start = 4, ceiling = 9")
    mark(engine, made.id)
    run_until_quiet(coordinator_without_redis(engine))
    assert snapshot(engine, made.id).desired_replicas == 4
    assert snapshot(engine, made.id).autoscaling.last_at is None


def test_an_old_value_fires_nothing_and_says_so(engine: Engine) -> None:
    made = ruled(engine, UP)
    push(engine, 50)
    write(engine, "UPDATE metric_values SET at = at - interval '31 seconds'")
    mark(engine, made.id)
    check(engine)
    (row,) = read(engine, "SELECT desired_replicas, reason FROM deployments")
    assert row["desired_replicas"] == 3
    assert row["reason"] == ("3 of 3 replicas healthy; the value of queue is 31 s old, at most 30 s are allowed")


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


def test_a_chunk_of_thirty_with_rules_takes_as_many_statements_as_one_without(engine: Engine) -> None:
    sent = sent_by(engine)
    counts = []
    make_deployment(engine, name="without")
    for more in (0, 1, 29):
        for number in range(more):
            ruled(engine, UP, DOWN, name=f"w-{more}-{number}")
        write(engine, "UPDATE deployments SET due_at = now()")
        sent.clear()
        assert check(engine) == {0: 1, 1: 2, 29: 31}[more]
        counts.append(len(sent))
    assert counts == [5, 5, 5]
