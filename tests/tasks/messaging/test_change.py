"""A change outside the coordinator: its handler and the proxies hear of it after the commit, and only then."""

import re
from uuid import UUID

import pytest
import redis
from psycopg import Connection
from sqlalchemy import Engine

from tasks.cycle.change_and_wake import change_and_wake
from tasks.redis.wake import Waker
from tasks.task_settings import TRAFFIC_CHANNEL
from tests.support.pictures.pictures import PROVISIONING, SCALING
from tests.support.rows.deployments import make_deployment, read
from tests.support.workers.queues import waiting
from tests.support.workers.runtimes import ROOT


def woken(client: redis.Redis) -> list[tuple[object, object]]:
    return sorted((arguments["lifecycle_type"], arguments["sub_step"]) for _, arguments in waiting(client, "lifecycle"))


def test_the_handlers_of_what_changed_are_woken_and_proxies_hear_of_it(
    engine: Engine, waker: Waker, redis_client: redis.Redis
) -> None:
    web = make_deployment(engine, "■■■|", status=PROVISIONING)
    api = make_deployment(engine, "■■■", name="api", status=SCALING)
    make_deployment(engine, name="other")
    with redis_client.pubsub(ignore_subscribe_messages=True) as channel:  # type: ignore[no-untyped-call]
        channel.subscribe(TRAFFIC_CHANNEL)
        assert change_and_wake(engine, waker, lambda _: frozenset({web.id, api.id})) == {web.id, api.id}
        channel.get_message(timeout=1)
        assert channel.get_message(timeout=5), "the announcement"
    assert woken(redis_client) == [("deploying", "provisioning"), ("scaling", None)]


def test_a_change_that_fails_or_touches_nothing_wakes_nobody(
    engine: Engine, waker: Waker, redis_client: redis.Redis
) -> None:
    web = make_deployment(engine, status=SCALING)

    def fail(connection: Connection) -> frozenset[UUID]:
        connection.execute("UPDATE deployments SET reason = 'changed'")
        raise RuntimeError(str(web.id))

    with pytest.raises(RuntimeError):
        change_and_wake(engine, waker, fail)
    assert read(engine, "SELECT reason FROM deployments WHERE reason = 'changed'") == []
    assert change_and_wake(engine, waker, lambda _: frozenset()) == frozenset()
    assert woken(redis_client) == []


def test_nothing_else_wakes_the_handlers_of_a_change() -> None:
    """A forgotten wake costs seconds and fails no test, so there is one place that remembers it.

    The coordinator wakes what follows its own decisions, the alarm what is due, retention what was due
    while it was held there, the Celery task a command's deployment.
    """
    knows = re.compile(r"\bstatuses_of\(|\bevents_of\(|\.after_change\(|\.deployments\(")
    found = {
        str(path.relative_to(ROOT))
        for folder in ("tasks", "api", "cli")
        for path in (ROOT / folder).rglob("*.py")
        if knows.search(path.read_text())
    }
    allowed = {
        "cycle/change_and_wake.py",
        "command_tasks.py",
        "cycle/coordinator.py",
        "lifecycle.py",
        "redis/wake.py",
        "housekeeping.py",
    }
    assert found == {f"tasks/{name}" for name in allowed}
