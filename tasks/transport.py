"""Kombu's Redis transport, made to survive that Redis goes away while a worker holds an unacknowledged message.

When Celery 5.7.0 closes a broken connection it gives unacknowledged messages back. For that it asks the connection for
its parameters, finds them gone, and the worker exits. This channel remembers the parameters.
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
