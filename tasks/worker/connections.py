"""The connections that wake workers: a process's Redis client and its waker, each made at its first use."""

from functools import cache

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tasks.redis.wake import Waker
from tasks.task_settings import settings


@cache
def redis_client() -> redis.Redis:
    """The client for locks and wakes. It tries twice: by default redis-py blocks for 4.4 s on a dead server."""
    return redis.Redis.from_url(
        settings().redis_url, socket_timeout=5, socket_connect_timeout=2, retry=Retry(NoBackoff(), 1)
    )


@cache
def waker() -> Waker:
    """Sends the events that follow a change."""
    return Waker(redis_client())
