"""Messages that did not fit, put aside with the reason: the last ones as a list in Redis, and how many there were."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

import redis

from domain.text.storable import storable
from tasks.task_settings import KEY_PREFIX

KEPT = 100
_LIST = f"{KEY_PREFIX}aside"
_COUNT = f"{KEY_PREFIX}aside:count"
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class AsideMessage:
    """A message that was put aside. `size` in bytes; `begins` with these characters."""

    at: datetime
    queue: str
    why: str
    size: int
    begins: str


def put_aside(client: redis.Redis, queue: str, raw: bytes, why: str) -> None:
    """Keep the beginning of a message with the reason, for a person to see. Raises RedisError."""
    record = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "queue": queue,
        "why": why,
        "size": len(raw),
        "begins": storable(raw[:_SHOWN].decode(errors="replace")),
    }
    pipeline = client.pipeline()
    pipeline.lpush(_LIST, json.dumps(record))
    pipeline.ltrim(_LIST, 0, KEPT - 1)
    pipeline.incr(_COUNT)
    pipeline.execute()


def how_many_aside(client: redis.Redis) -> int:
    """Count the messages that were ever put aside. Raises RedisError."""
    count = client.get(_COUNT)
    return int(count) if isinstance(count, bytes) else 0


def last_aside(client: redis.Redis) -> list[AsideMessage]:
    """The messages put aside last, the newest first, KEPT at most. Raises RedisError."""
    rows: list[bytes] = client.lrange(_LIST, 0, -1)  # type: ignore[assignment]
    letters = []
    for row in rows:
        record = json.loads(row)
        at = datetime.fromisoformat(record["at"])
        letters.append(AsideMessage(at, record["queue"], record["why"], record["size"], record["begins"]))
    return letters
