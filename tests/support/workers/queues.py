"""What waits in Valkey's queues: messages as a worker would find them; and the answers that it leaves."""

import base64
import json
from typing import Any

import redis
from celery.states import READY_STATES

from tasks.task_settings import KEY_PREFIX
from tests.support.stack.waiting import eventually


def waiting(client: redis.Redis, queue: str) -> list[tuple[str, dict[str, Any]]]:
    """(task, keyword arguments) of each message, the oldest first."""
    return [(headers["task"], arguments) for headers, arguments in _messages(client, queue)]


def expiring(client: redis.Redis, queue: str) -> list[str | None]:
    """When each message expires."""
    return [headers.get("expires") for headers, _ in _messages(client, queue)]


def drop_all(client: redis.Redis, queue: str) -> int:
    """Take the messages out, as a worker does; returns how many there were."""
    count = int(client.llen(f"{KEY_PREFIX}{queue}"))
    client.delete(f"{KEY_PREFIX}{queue}")
    return count


def answer_of(client: redis.Redis, task_id: str, within: float = 120) -> dict[str, Any]:
    """The answer to a command that was sent, as Celery keeps it: {"status", "result"}. A try that failed is none."""

    def look() -> dict[str, Any] | None:
        kept = json.loads(client.get(f"{KEY_PREFIX}celery-task-meta-{task_id}") or "{}")
        return kept if kept.get("status") in READY_STATES else None

    found: dict[str, Any] = eventually(look, within, f"the answer to {task_id}")
    return found


def _messages(client: redis.Redis, queue: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    raw: list[bytes] = client.lrange(f"{KEY_PREFIX}{queue}", 0, -1)  # type: ignore[assignment]
    found = []
    for text in reversed(raw):
        message = json.loads(text)
        _, arguments, _ = json.loads(base64.b64decode(message["body"]))
        found.append((message["headers"], arguments))
    return found
