"""The channel to Redis: one client, and whether anybody hears events."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from kombu.connection import Connection

from tasks.worker.transport import Transport
from tests.support.stack.waiting import eventually


@pytest.fixture
def channel(redis_url: str) -> Iterator[Any]:
    with Connection(redis_url, transport=Transport) as connection:  # type: ignore[no-untyped-call]
        yield connection.default_channel


def beat(channel: Any) -> bool:
    """As a worker's heartbeat is published; whether task events may be heard after it."""
    channel._put_fanout("celeryev", {}, "worker.heartbeat")
    return bool(channel.may_be_heard)


def test_a_channel_keeps_one_client_for_what_it_sends(channel: Any) -> None:
    assert channel._create_client() is channel._create_client()
    channel._disconnect_pools()
    assert channel._create_client().ping(), "and makes another for another pool"


def test_events_may_be_heard_until_one_was_heard_by_nobody_and_again_once_somebody_listens(
    channel: Any, redis_client: redis.Redis
) -> None:
    assert channel.may_be_heard
    assert not beat(channel)
    channel._put_fanout("celery.pidbox", {}, "")
    assert not channel.may_be_heard, "only events count"
    with redis_client.pubsub() as listener:  # type: ignore[no-untyped-call]
        listener.psubscribe("/0.celeryev/*")
        assert beat(channel)
    assert eventually(lambda: not beat(channel))
