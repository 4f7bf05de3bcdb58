"""Task events: Flower lists what happens and no tick; a worker without them is as fast."""

import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
import redis
from redis.client import Monitor

from domain.handlers.dispatch import HANDLERS
from tests.support.proxies import plain_http
from tests.support.stack.flower import start_flower
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

COMMANDS = 100


def seconds(fleet: Fleet, client: redis.Redis) -> float:
    """The time in which the running worker does all commands, each of which makes a deployment."""
    began = time.monotonic()
    ids = [_send(fleet, number) for number in range(COMMANDS)]
    keys = [f"rollway:celery-task-meta-{task_id}" for task_id in ids]
    eventually(lambda: _answered(client, keys) == COMMANDS, what="all answers")
    return time.monotonic() - began


def _send(fleet: Fleet, number: int) -> str:
    name = f"{number}-{uuid4().hex}"
    payload = {"request_id": name, "deployment": name, "desired_replicas": 0}
    return str(fleet.producer.send_task("rollway.create_deployment", kwargs={"payload": payload}, queue="commands").id)


def _answered(client: redis.Redis, keys: Sequence[str]) -> int:
    return int(client.exists(*keys))


def test_a_worker_without_task_events_is_as_fast_as_one_with_them(fleet: Fleet, redis_client: redis.Redis) -> None:
    for name, task_events in (("with", "-E"), ("without", "")):
        fleet.start_workers(name, task_events=task_events)
        seconds(fleet, redis_client)  # the first ones open connections
        with redis_client.monitor() as sent:  # type: ignore[no-untyped-call]
            # one that nobody wakes takes 16 s or more each time: its four threads stand idle for half a second in turn
            eventually(lambda: seconds(fleet, redis_client) < 6, what=f"a worker {name} task events to be quick")
            assert not _told_of_tasks(redis_client, sent), "nobody listens"
        fleet.kill(name)


def _told_of_tasks(client: redis.Redis, sent: Monitor) -> list[str]:
    """The commands by which task events went out since that monitor began."""
    client.echo("the end")
    commands = iter(lambda: str(sent.next_command()["command"]), "ECHO the end")  # type: ignore[no-untyped-call]
    return [command for command in commands if command.startswith("PUBLISH") and "celeryev/task." in command]


def test_flower_shows_what_each_task_is_about_what_was_refused_and_no_tick(fleet: Fleet) -> None:
    flower = start_flower(fleet)
    fleet.start_workers("worker")
    fleet.start_beat()
    eventually(
        lambda: "flower_worker_online{" in plain_http.get(f"{flower}/metrics").text, what="events to reach Flower"
    )
    fleet.deploy_first(replicas=1)
    asked = {"deployment": "web", "revision": "v1", "actor": "alice"}
    for name, more in (("right", {}), ("wrong", {"revision": "v9", "reason": "s" * 900})):
        payload = {"request_id": name, **asked, **more}
        fleet.producer.send_task("rollway.activate_revision", kwargs={"payload": payload}, task_id=name)
    eventually(lambda: _done(fleet).get("rollway.wake_what_is_due", 0) > 3, what="some ticks")
    shown = eventually(lambda: _shown(flower, "right", "wrong"), what="both commands")

    names = {task["name"] for task in shown.values()}
    looks = {"start on here", "start on each host", "stop on here", "stop on each host"}
    cycles = {str(event) for event in HANDLERS}
    assert "start on here" in names
    assert names & cycles
    assert names <= {"rollway.activate_revision", *looks, *cycles}
    right, wrong = shown["right"], shown["wrong"]
    assert (right["name"], right["state"]) == ("rollway.activate_revision", "SUCCESS")
    assert right["kwargs"] == "deployment='web' revision='v1' actor='alice' request_id='right'"
    assert wrong["state"] == "REFUSED"
    assert "web has no revision v9" in wrong["result"]
    assert len(wrong["kwargs"]) < 300
    log = fleet.log("worker")
    assert "event='refused' command='rollway.activate_revision' deployment='web' revision='v9'" in log
    assert "code='revision_not_found'" in log


def _done(fleet: Fleet) -> dict[str, int]:
    """How often the worker began each task."""
    (told,) = (fleet.producer.control.inspect().stats() or {"": {"total": {}}}).values()
    return dict(told["total"])


def _shown(flower: str, *ids: str) -> dict[str, Any] | None:
    """The tasks that Flower lists, once it has heard of the end of these."""
    shown = plain_http.get(f"{flower}/api/tasks").json()
    return shown if all(shown.get(task_id, {}).get("result") for task_id in ids) else None
