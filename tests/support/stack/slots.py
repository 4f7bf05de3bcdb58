"""Slots of the workers of a test, and the events that they sent once more."""

from collections.abc import Iterable

import redis

from tasks.redis.locks import Slots

KEY = "rollway:lock:x:0"


class Sent(list[str]):
    """The keys of the events that were sent once more."""

    def again(self, keys: Iterable[str]) -> None:
        self.extend(keys)


def slots(client: redis.Redis, sent: Sent, count: int = 1, seconds: float = 5) -> Slots:
    return Slots(client, count, seconds, sent.again)
