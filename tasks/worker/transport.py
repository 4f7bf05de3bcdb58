"""Kombu's Redis transport, made to believe no message unseen, and to survive that Redis goes away.

A message that does not fit would end the worker, or stop its queues for good; it is put aside instead.

When Celery 5.7.0 closes a broken connection it gives unacknowledged messages back. For that it asks the connection for
its parameters, finds them gone, and the worker exits. This channel remembers the parameters.

Kombu makes a client for each command that it sends to Redis, a tenth of a worker's time. This channel keeps one.

Kombu asks Redis where a command goes that is given back, and drops it where Redis was emptied. This channel knows.
"""

import json
from functools import partial
from queue import Empty
from time import monotonic
from typing import Any

import redis
import structlog
from kombu.transport import redis as kombu_redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from tasks.messaging.envelope import UnfitMessageError, check_message, checked_broadcast, refusal
from tasks.messaging.queues import takes_tasks
from tasks.redis.dead_letters import put_aside

_EVENTS = "celeryev"
"""Celery's exchange for task events, and for the heartbeats of workers, one in two seconds."""
_UNHEARD_SECONDS = 3.0
_WARN_SECONDS = 1.0
_log = structlog.get_logger(__name__)


class _Warnings:
    """The log gets one line of an event a second at most: a million wrong messages must not fill the disk."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._next_at = 0.0
        self._since = 0

    def add(self, **more: str) -> None:
        self._since += 1
        if monotonic() < self._next_at:
            return
        _log.warning(self._event, **more, since_last_line=self._since)
        self._next_at, self._since = monotonic() + _WARN_SECONDS, 0


_messages_aside = _Warnings("a message that does not fit was put aside")
_dropped_broadcasts = _Warnings("a broadcast was dropped")


class _TransportClient(kombu_redis.PrefixedStrictRedis):
    """Hands on a message that a worker has waited for only when it fits; else a refusal, or it is as if none came."""

    def parse_response(self, connection: Any, command_name: str, **options: Any) -> Any:  # noqa: ANN401  (redis-py's)
        answer = super().parse_response(connection, command_name, **options)  # type: ignore[no-untyped-call]
        if command_name != "BRPOP" or not answer:
            return answer
        key, raw = answer
        queue = key.decode().partition(kombu_redis.Channel.sep)[0]  # a priority follows it
        if not takes_tasks(queue):
            return answer
        message = self._check(queue, raw)
        return None if message is None else (key, json.dumps(message))

    def _check(self, queue: str, raw: bytes) -> dict[str, Any] | None:
        try:
            return check_message(raw, queue)
        except UnfitMessageError as unfit:
            self._put_aside(queue, raw, str(unfit))
            return refusal(raw, queue, str(unfit))

    def _put_aside(self, queue: str, raw: bytes, why: str) -> None:
        _messages_aside.add(queue=queue, why=why)
        try:
            put_aside(redis.Redis(connection_pool=self.connection_pool), queue, raw, why)
        except RedisError as error:
            _log.warning("the message is lost: Redis does not take it back", queue=queue, error=str(error))


class Channel(kombu_redis.Channel):
    """A channel that checks what it takes, and whose connection parameters outlive its connection."""

    _connection_settings: dict[str, Any] | None = None
    _shared_client: redis.Redis | None = None
    _unheard_until = 0.0

    @property
    def may_be_heard(self) -> bool:
        """False while nobody listens to events: Redis says of each that is published how many did."""
        return monotonic() >= self._unheard_until

    def get_table(self, exchange: str) -> list[tuple[str, ...]]:
        """Return (routing key, pattern, queue) of each queue of an exchange: one of ours, that of its own name."""
        if takes_tasks(exchange):
            return [(exchange, "", exchange)]
        table: list[tuple[str, ...]] = super().get_table(exchange)  # type: ignore[no-untyped-call]
        return table

    def _put_fanout(self, exchange: str, message: object, routing_key: str, **_: object) -> None:
        topics = self._get_publish_topics(exchange, routing_key)  # type: ignore[no-untyped-call]
        counts = [self._create_client().publish(topic, json.dumps(message)) for topic in topics]
        if exchange == _EVENTS:
            self._unheard_until = 0.0 if any(counts) else monotonic() + _UNHEARD_SECONDS

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002  (Kombu's signature)
        if asynchronous:  # it holds a connection of its own
            return super()._create_client(asynchronous=True)  # type: ignore[no-untyped-call]
        if self._shared_client is None or self._shared_client.connection_pool is not self.pool:
            self._shared_client = super()._create_client()  # type: ignore[no-untyped-call]
        return self._shared_client

    def _get_client(self) -> partial[_TransportClient]:
        return partial(_TransportClient, global_keyprefix=self.global_keyprefix)

    def _receive_one(self, c: Any) -> Any:  # noqa: ANN401  (Kombu's)
        try:
            return super()._receive_one(c)  # type: ignore[no-untyped-call]
        except RecursionError:
            _dropped_broadcasts.add(why="it is nested too deeply")
            raise Empty from None

    def _deliver_fanout_message(self, message: object, exchange: str) -> bool:
        if not exchange.endswith(".pidbox"):
            return bool(super()._deliver_fanout_message(message, exchange))  # type: ignore[no-untyped-call]
        try:
            question = checked_broadcast(message)
        except UnfitMessageError as unfit:
            _dropped_broadcasts.add(why=str(unfit))
            return False
        return bool(super()._deliver_fanout_message(question, exchange))  # type: ignore[no-untyped-call]

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002  (Kombu's signature)
        connection = self.connection
        if connection is not None and connection.client is not None:
            parameters: dict[str, Any] = super()._connparams(asynchronous=asynchronous)  # type: ignore[no-untyped-call]
            if not asynchronous:
                self._connection_settings = dict(parameters)
            elif self._connection_settings is None:
                self._connection_settings = super()._connparams(asynchronous=False)  # type: ignore[no-untyped-call]
            return parameters
        if self._connection_settings is None:
            raise RedisConnectionError("the channel is closed")
        return dict(self._connection_settings)


class Transport(kombu_redis.Transport):
    """Redis, with that channel."""

    Channel = Channel
    brpop_timeout = 2
    """Seconds for which a worker waits for a message before it asks for one again."""
