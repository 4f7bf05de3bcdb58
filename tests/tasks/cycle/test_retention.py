"""The past is cut by a tick that workers know."""

from typing import LiteralString

import pytest
import redis
from sqlalchemy import Engine

from tasks.app import app
from tasks.messaging.task_names import TASKS
from tasks.task_settings import retention
from tasks.worker.beat import beat_schedule
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import ask, make_deployment, read, write
from tests.support.workers.queues import waiting

pytestmark = pytest.mark.usefixtures("this_process_is_a_worker")


def test_no_message_to_a_task_that_workers_have_or_that_beat_sends_is_put_aside() -> None:
    assert {name for name in app.tasks if name.startswith("rollway.")} == TASKS
    assert {entry["task"] for entry in beat_schedule().values()} <= TASKS


def test_the_past_of_every_deployment_is_cut_and_one_that_fell_due_meanwhile_is_woken(
    engine: Engine, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWAY_KEEP_HISTORY_COUNT", "5")
    retention.cache_clear()
    for name in ("web", "api"):
        make_deployment(engine, "■■■|", name=name, status=PROVISIONING)
    query: LiteralString = """
        INSERT INTO deployment_history (deployment_id, phase, result, target, actor, message, updated_at)
        SELECT id, 'x', 'success', 'ready', 'ann', 'old', now() - interval '31 days' - n * interval '1 second'
          FROM deployments, generate_series(1, 1200) n
    """
    write(engine, query)
    app.tasks["rollway.cut_the_past"](interval=60.0)
    write(engine, query)
    app.tasks["rollway.cut_the_past"](interval=60.0)
    retention.cache_clear()
    assert read(engine, "SELECT count(*) FROM deployment_history") == [{"count": 2 * (5 + 1200)}], "a second beat's"
    assert [arguments["sub_step"] for _, arguments in waiting(redis_client, "lifecycle")] == ["provisioning"]


def test_events_that_were_given_up_long_ago_are_forgotten(engine: Engine) -> None:
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    made = make_deployment(engine)
    for size in (4, 5, 6):
        ask(engine, "scale", deployment="web", desired_replicas=size)
    given_up: LiteralString = """
        UPDATE outbox
           SET why = 'gone', given_up_at = now() - make_interval(days => 16 - 2 * (data->>'desired_replicas')::int)
         WHERE deployment_id = %s AND data->>'desired_replicas' <> '6'
    """
    write(engine, given_up, made.id)
    app.tasks["rollway.cut_the_past"]()
    left = read(engine, "SELECT (data->>'desired_replicas')::int AS size FROM outbox ORDER BY position")
    assert left == [{"size": 5}, {"size": 6}]


def test_tokens_freezes_and_hosts_that_ended_long_ago_are_forgotten(engine: Engine) -> None:
    tokens: LiteralString = """
        INSERT INTO tokens (name, hash, role, created_by, expires_at)
        SELECT concat('ci-', days), sha256(concat(days)::bytea), 'viewer', 'ann', now() - days * interval '1 day'
          FROM unnest(ARRAY[-1, 29, 31, NULL]) days
    """
    freezes: LiteralString = """
        INSERT INTO freezes (name, starts_at, ends_at, actor, reason)
        SELECT 'night-' || days, now() - interval '99 days', now() - days * interval '1 day', 'ann', ''
          FROM unnest(ARRAY[-1, 29, 31]) days
    """
    hosts: LiteralString = """
        INSERT INTO hosts (name, address, last_seen_at, down_since)
        SELECT 'rack-' || days, '10.0.0.9', now() - days * interval '1 day', now() - days * interval '1 day'
          FROM unnest(ARRAY[29, 31]) days
    """
    for query in (tokens, freezes, hosts):
        write(engine, query)
    make_deployment(engine, "■✗", n=2)
    write(engine, "UPDATE routes SET host = 'rack-31', stopped_at = NULL WHERE status = 'failed'")
    app.tasks["rollway.cut_the_past"]()
    names = {
        table: {row["name"] for row in read(engine, query)}
        for table, query in (
            ("tokens", "SELECT name FROM tokens"),
            ("freezes", "SELECT name FROM freezes"),
            ("hosts", "SELECT name FROM hosts WHERE name ~ '^rack'"),
        )
    }
    assert names == {"tokens": {"ci--1", "ci-29", "ci-"}, "freezes": {"night--1", "night-29"}, "hosts": {"rack-29"}}
    assert read(engine, "SELECT 1 FROM routes WHERE host = 'rack-31' AND stopped_at IS NULL") == []
