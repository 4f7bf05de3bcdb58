"""Events for tasks of other services: a queue that nobody reads does not grow."""

import threading
from typing import Any

from sqlalchemy import Engine

from domain.outbox.delivery import MOST_QUEUED
from tasks.outbox.courier import Courier
from tests.support.rows.deployments import ask, make_deployment, read
from tests.support.stack.waiting import eventually


def test_an_event_waits_while_nobody_takes_what_lies_in_its_queue(engine: Engine) -> None:
    lie, sent = [MOST_QUEUED], list[tuple[Any, ...]]()
    courier = Courier(engine, dict, lambda *given: sent.append(given), lambda _: lie[0], 5, threading.Event())
    ask(engine, "set_subscription", subscription="ci", celery_task="shop.deployed", queue="shop")
    make_deployment(engine)
    ask(engine, "scale", deployment="web", desired_replicas=4)
    courier.look()
    why = "1000 messages lie in the queue shop, and nobody takes them"
    eventually(lambda: read(engine, "SELECT 1 FROM outbox WHERE why = %s AND due_at > now()", why))
    assert sent == []
    lie[0] = MOST_QUEUED - 1
    ask(engine, "resend_events", subscription="ci")

    def is_sent() -> bool:
        courier.look()
        return sent != [] and read(engine, "SELECT 1 FROM outbox") == []

    eventually(is_sent, what="the event to be sent")
    eventually(lambda: "courier" not in {thread.name for thread in threading.enumerate()}, what="the last look to end")
    ((task, event, queue, seconds),) = sent
    assert (task, event["subject"], queue) == ("shop.deployed", "web", "shop")
    assert 80_000 < seconds <= 86_400, "nobody needs it when it would have been given up"
