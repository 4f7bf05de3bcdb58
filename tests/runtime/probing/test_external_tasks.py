"""Replicas of another system, asked for by a real Celery message."""

import base64
import json
from collections.abc import Iterator, Mapping

import celery
import pytest
import redis
from kombu.entity import Queue

from runtime.external_runtime import ExternalRuntime
from runtime.protocol import RuntimeUnavailableError
from tests.support.people.webhooks import asked_at, document


@pytest.fixture
def producer(redis_url: str) -> Iterator[celery.Celery]:
    app = celery.Celery(broker=redis_url, task_create_missing_queues=False, set_as_current=False)
    yield app
    app.close()


@pytest.mark.parametrize("queue", ["gpu-fleet", None])
def test_a_task_is_sent_with_the_document_as_its_payload(
    producer: celery.Celery, redis_url: str, queue: str | None
) -> None:
    def send(name: str, payload: Mapping[str, object], to: str) -> None:
        producer.send_task(name, kwargs={"payload": payload}, queue=Queue(to))  # type: ignore[no-untyped-call]

    runtime = ExternalRuntime(send)
    request = asked_at({"task": "fleet.replica"} | ({"queue": queue} if queue else {}))
    assert runtime.start(request).address is None
    runtime.terminate(request.route_id, request)
    runtime.kill(request.route_id, request)
    with redis.Redis.from_url(redis_url) as client:
        messages = [json.loads(text) for text in client.lrange(queue or "celery", 0, -1)]
    assert [message["headers"]["task"] for message in messages] == ["fleet.replica"] * 3
    sent = [json.loads(base64.b64decode(message["body"]))[1]["payload"] for message in reversed(messages)]
    assert sent == [document(request, action) for action in ("start", "stop", "kill")]


def test_a_broker_that_is_away_is_trouble_and_no_refusal() -> None:
    app = celery.Celery(broker="redis://127.0.0.1:1/0", set_as_current=False)
    app.conf.task_publish_retry = False
    runtime = ExternalRuntime(
        lambda name, payload, queue: app.send_task(name, kwargs={"payload": payload}, queue=queue)
    )
    request = asked_at({"task": "fleet.replica"})
    with pytest.raises(RuntimeUnavailableError, match=r"the task 'fleet.replica' cannot be sent"):
        runtime.start(request)
    app.close()
