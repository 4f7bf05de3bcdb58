"""Workers with and without task events: a thread that becomes free has its next task at once."""

import time
from collections.abc import Sequence
from uuid import uuid4

import pytest
import redis

from tests.support.stack import Fleet
from tests.support.waiting import eventually

pytestmark = pytest.mark.e2e

COMMANDS = 100


def seconds(fleet: Fleet, client: redis.Redis) -> float:
    """How long the running worker takes for all commands, each of which makes a deployment."""
    began = time.monotonic()
    ids = [_send(fleet, number) for number in range(COMMANDS)]
    keys = [f"rollway:celery-task-meta-{task_id}" for task_id in ids]
    eventually(lambda: _answered(client, keys) == COMMANDS, 60, "all answers")
    return time.monotonic() - began


def _send(fleet: Fleet, number: int) -> str:
    name = f"{number}-{uuid4().hex}"
    payload = {"request_id": name, "deployment": name, "desired_replicas": 0}
    return str(fleet.producer.send_task("rollway.create_deployment", kwargs={"payload": payload}, queue="commands").id)


def _answered(client: redis.Redis, keys: Sequence[str]) -> int:
    return int(client.exists(*keys))


def test_a_worker_without_task_events_is_as_fast_as_one_with_them(fleet: Fleet, client: redis.Redis) -> None:
    took = {}
    for name, task_events in (("with", "-E"), ("without", "")):
        fleet.start_workers(name, task_events=task_events)
        seconds(fleet, client)  # the first ones open connections
        took[name] = min(seconds(fleet, client) for _ in range(2))
        fleet.kill(name)
    assert took["without"] < 3 * took["with"], took
