"""Events from real workers to a real receiver and to a queue of Celery's, when workers are killed while they send."""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.people.receivers import Receiver, receiving
from tests.support.rows.deployments import read
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def sent_to(client: redis.Redis, queue: str) -> list[tuple[str, dict[str, Any]]]:
    """The tasks that wait there with their payloads, the oldest first."""
    messages = [json.loads(text) for text in client.lrange(f"rollway:{queue}", 0, -1)]
    bodies = [json.loads(base64.b64decode(message["body"]))[1]["payload"] for message in messages]
    return list(zip((message["headers"]["task"] for message in messages), bodies, strict=True))[::-1]


def in_order(events: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Each event once: its id, and the version of its deployment."""
    return list(dict.fromkeys((event["id"], event["data"]["version"]) for event in events))


def test_when_a_worker_is_killed_while_it_sends_another_sends_it_again_and_the_order_holds(
    fleet: Fleet, redis_client: redis.Redis, receiver: Receiver, tmp_path: Path
) -> None:
    targets = tmp_path / "webhooks"
    targets.write_text(receiver.line)
    targets.chmod(0o600)
    settings = {"ROLLWAY_WEBHOOKS": str(targets), "ROLLWAY_WEBHOOK_SECONDS": "2"}
    receiver.goes_on.clear()
    fleet.ask("set_subscription", subscription="ci", webhook="ci")
    fleet.ask("set_subscription", subscription="shop", celery_task="shop.deployed", queue="shop")
    fleet.ask("create_deployment", deployment="web", desired_replicas=0)
    for size in (1, 2, 3):
        fleet.ask("scale", deployment="web", desired_replicas=size)
    fleet.start_beat()
    fleet.start_workers("worker1", **settings)
    eventually(lambda: receiver.asked, what="the first event to be on its way")
    fleet.kill("worker1")
    receiver.goes_on.set()
    fleet.start_workers("worker2", **settings)
    eventually(
        lambda: read(fleet.engine, "SELECT count(*) AS left FROM outbox") == [{"left": 0}], what="all to be sent"
    )
    assert receiver.versions("web") == [1, 2, 3, 4]
    times = Counter(event["data"]["version"] for event in receiver.taken)
    assert times == {1: 2, 2: 1, 3: 1, 4: 1}, "the first came twice, since nobody heard that it had arrived"
    assert receiver.forged == 0
    told = sent_to(redis_client, "shop")
    assert {task for task, _ in told} == {"shop.deployed"}
    assert in_order([event for _, event in told]) == in_order(receiver.taken), "the same events go to both"
