"""Notices come through Redis: a line that keeps quiet is told from one on which nobody says anything."""

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
import redis

from api.proxies.notices import Notices
from tasks.settings import TRAFFIC_CHANNEL
from tests.support.faults.forwarder import Forwarder, forwarder
from tests.support.stack.waiting import eventually


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.proxies.notices._QUIET_SECONDS", 1.0)


async def until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(eventually, condition, 10)


async def cut_and_mended(network: Forwarder, url: str, client: redis.Redis) -> None:
    heard: list[None] = []
    notices = Notices(url, lambda: heard.append(None))
    listening = asyncio.create_task(notices.run())
    await until(lambda: notices.fault is None)
    await asyncio.sleep(2.5)
    assert (notices.fault, len(heard)) == (None, 1), "that it is quiet is no fault, and no notice"

    network.is_forwarding.clear()
    await until(lambda: notices.fault is not None)
    client.publish(TRAFFIC_CHANNEL, b"")
    network.is_forwarding.set()
    await until(lambda: notices.fault is None)

    before = len(heard)
    client.publish(TRAFFIC_CHANNEL, b"")
    await until(lambda: len(heard) == before + 1)
    listening.cancel()


def test_a_line_that_keeps_its_connections_and_forwards_nothing_is_noticed_and_made_anew(
    redis_url: str, client: redis.Redis
) -> None:
    there = urlsplit(redis_url)
    assert there.port
    with forwarder(there.port) as network:
        url = redis_url.replace(f":{there.port}", f":{network.port}")
        asyncio.run(cut_and_mended(network, url, client))
