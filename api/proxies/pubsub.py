"""Notices on Redis' channel: a writer that changes the table announces it, and the publisher reads at once."""

import asyncio
from collections.abc import Callable

import redis.asyncio
import structlog
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from tasks.task_settings import TRAFFIC_CHANNEL

_RETRY_SECONDS = 0.5
_QUIET_SECONDS = 4.0
"""A connection that is silent for this long is pinged, and given up when the answer takes as long."""
_log = structlog.get_logger(__name__)


class Notices:
    """Listens until cancelled. `fault`: why no notice arrives, or None. Meanwhile the publisher reads by itself."""

    def __init__(self, redis_url: str, on_notice: Callable[[], None]) -> None:
        self.fault: str | None = "not connected yet"
        self._url = redis_url
        self._on_notice = on_notice

    async def run(self) -> None:
        """Connect, listen, and connect again when the connection is lost."""
        while True:
            try:
                await self._listen()
            except (RedisError, OSError) as error:
                if self.fault is None:
                    _log.warning("Redis is away; changes are found by reading twice a second", error=str(error))
                self.fault = f"{type(error).__name__}: {error}"
                await asyncio.sleep(_RETRY_SECONDS)

    async def _listen(self) -> None:
        """Ends by an error. A network that has dropped the connection reports none, so the server is pinged."""
        client = redis.asyncio.Redis.from_url(
            self._url, retry=Retry(NoBackoff(), 0), socket_connect_timeout=2, socket_timeout=_QUIET_SECONDS
        )
        async with client, client.pubsub() as channel:
            await channel.subscribe(TRAFFIC_CHANNEL)
            owes_answer = True
            while True:
                message = await channel.get_message(timeout=_QUIET_SECONDS)
                if message is None and owes_answer:
                    raise TimeoutError(f"Redis gave no answer for {_QUIET_SECONDS:g} s")
                owes_answer = message is None
                if message is None:
                    await channel.ping()
                elif message["type"] != "pong":
                    self.fault = None
                    self._on_notice()  # also when it has just subscribed: nobody heard what was said before
