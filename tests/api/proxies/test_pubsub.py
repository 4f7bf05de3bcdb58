"""Notices come through Redis: a quiet line is told from a dead one, and spares whoever hears it most of its reads."""

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
import redis
from sqlalchemy import Engine

from api.proxies.key_opener import Opener
from api.proxies.publisher import Publisher
from api.proxies.pubsub import Notices
from api.proxies.resolver import Names
from api.proxies.server_metrics import Observed
from tasks.task_settings import TRAFFIC_CHANNEL
from tests.support.faults.forwarder import Forwarder, forwarder
from tests.support.stack.waiting import eventually


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.proxies.pubsub._QUIET_SECONDS", 1.0)


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
    redis_url: str, redis_client: redis.Redis
) -> None:
    there = urlsplit(redis_url)
    assert there.port
    with forwarder(there.port) as network:
        url = redis_url.replace(f":{there.port}", f":{network.port}")
        asyncio.run(cut_and_mended(network, url, redis_client))


READ_FOR_SECONDS = 3.2


async def reads(engine: Engine, *, is_told: bool, ask_after: float | None = None) -> list[float]:
    """When it read, in seconds from its first read."""
    publisher, read, times = (
        Publisher(engine, Names(), Opener(None, None), Observed(), lambda: None),
        asyncio.Event(),
        list[float](),
    )
    clock = asyncio.get_running_loop().time
    running = asyncio.create_task(publisher.run(lambda: is_told))
    if ask_after is not None:
        asyncio.get_running_loop().call_later(ask_after, publisher.read_soon)
    with publisher.tells(read):
        await read.wait()
        began = clock()
        while clock() - began < READ_FOR_SECONDS:
            times.append(clock() - began)
            read.clear()
            try:
                await asyncio.wait_for(read.wait(), began + READ_FOR_SECONDS - clock())
            except TimeoutError:
                break
    publisher.stop()
    await running  # a read that continues in its thread would keep its connection
    return times


@pytest.fixture
def _calm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.proxies.publisher._RESTLESS_SECONDS", 0.0)


@pytest.mark.usefixtures("_calm")
def test_where_changes_are_told_of_it_reads_every_other_second(engine: Engine) -> None:
    assert len(asyncio.run(reads(engine, is_told=True))) <= 3


@pytest.mark.usefixtures("_calm")
def test_what_is_told_of_is_read_at_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.proxies.publisher._REST_SECONDS", 60.0)
    assert len(asyncio.run(reads(engine, is_told=True))) == 1
    assert len(asyncio.run(reads(engine, is_told=True, ask_after=0.5))) == 2


@pytest.mark.usefixtures("_calm")
def test_where_nobody_tells_it_reads_twice_a_second(engine: Engine) -> None:
    assert len(asyncio.run(reads(engine, is_told=False))) >= 5


def test_after_news_it_reads_twice_a_second(engine: Engine) -> None:
    assert len(asyncio.run(reads(engine, is_told=True))) >= 5
