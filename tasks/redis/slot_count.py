"""Bounds how many workers may share a handler: a number in Redis that can be changed while they run."""

from time import monotonic

import redis

from domain.words.errors import InvalidInputError
from tasks.settings import KEY_PREFIX, MOST_SLOTS

_KEY = f"{KEY_PREFIX}slots"


_FRESH_SECONDS = 1.0


class SlotCount:
    """Reads the number from Redis, once a second at most; `default` where there is none."""

    def __init__(self, client: redis.Redis, default: int) -> None:
        self._client = client
        self._default = default
        self._known = default
        self._read_at = -_FRESH_SECONDS

    def __call__(self) -> int:
        """The number now. Raises RedisError when it must be read and Redis is away."""
        if monotonic() - self._read_at >= _FRESH_SECONDS:
            self._known = slots_asked_for(self._client) or self._default
            self._read_at = monotonic()
        return self._known


def slots_asked_for(client: redis.Redis) -> int | None:
    """The number that all workers keep to; None where each goes by its own ROLLWAY_SLOTS."""
    raw = client.get(_KEY)
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else ""
    return int(text) if text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_SLOTS else None


def ask_for_slots(client: redis.Redis, count: int | None) -> None:
    """Make all workers keep to this number within a second; None: each goes by its own ROLLWAY_SLOTS again.

    A worker that holds a slot beyond the number goes on until its work is done. Raises InvalidInputError.
    """
    if count is None:
        client.delete(_KEY)
    elif 1 <= count <= MOST_SLOTS:
        client.set(_KEY, count)
    else:
        raise InvalidInputError(f"slots must be a number from 1 to {MOST_SLOTS}, not {count}", field="slots")
