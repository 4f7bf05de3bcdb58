"""Kombu's Redis transport, that survives Redis going away in the moment between taking a message and acknowledging it.

Celery 5.7.0 closes a lost connection by giving unacknowledged messages back, asks the connection for its parameters
once more for that, and finds them gone: the worker exits. This channel remembers them.
"""

from typing import Any

from kombu.transport import redis as kombu_redis
from redis.exceptions import ConnectionError as RedisConnectionError


class Channel(kombu_redis.Channel):
    """A channel whose connection parameters outlive its connection."""

    _known: dict[str, Any] | None = None

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002  (Kombu's signature)
        connection = self.connection
        if connection is not None and connection.client is not None:
            parameters: dict[str, Any] = super()._connparams(asynchronous=asynchronous)  # type: ignore[no-untyped-call]
            if not asynchronous:
                self._known = dict(parameters)
            elif self._known is None:
                self._known = super()._connparams(asynchronous=False)  # type: ignore[no-untyped-call]
            return parameters
        if self._known is None:
            raise RedisConnectionError("the channel is closed")
        return dict(self._known)


class Transport(kombu_redis.Transport):
    """Redis, with that channel."""

    Channel = Channel
