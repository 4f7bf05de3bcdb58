"""The world of simulated replicas keeps its times, and asks and wakes as a worker host does."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from uuid import UUID

import redis
from sqlalchemy import Engine

from domain.model.lifecycle_events import RouteLifecycleType
from tasks.messaging.queues import LIFECYCLE_QUEUE, host_queue
from tasks.redis.wake import Waker
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import HERE, drawn, make_deployment, read, write
from tests.support.stack.waiting import eventually
from tests.support.workers.queues import waiting
from tools.bench.world import World

THERE = "there"
WOKEN = {"lifecycle_type": "deploying", "sub_step": "provisioning"}


@contextmanager
def running(engine: Engine, waker: Waker, client: redis.Redis, start_seconds: float) -> Iterator[None]:
    until = threading.Event()
    world = World(engine, waker, client, [HERE, THERE], start_seconds)
    thread = threading.Thread(target=world.run, args=(until,))
    thread.start()
    try:
        yield
    finally:
        until.set()
        thread.join(10)
    assert not thread.is_alive()


def is_drawn(engine: Engine, deployment_id: UUID, picture: str) -> bool:
    return drawn(engine, deployment_id) == picture


def woken(client: redis.Redis) -> list[dict[str, str]]:
    return [arguments for _, arguments in waiting(client, LIFECYCLE_QUEUE)]


def test_a_replica_that_is_asked_for_is_healthy_its_start_time_later_and_its_handler_is_woken(
    engine: Engine, waker: Waker, redis_client: redis.Redis
) -> None:
    with running(engine, waker, redis_client, start_seconds=0.5):
        began = time.monotonic()
        made = make_deployment(engine, "■■|◇", status=PROVISIONING)
        waker.routes_on([HERE], RouteLifecycleType.START)
        eventually(lambda: drawn(engine, made.id) == "■■|■")
    assert time.monotonic() - began > 0.5
    (new,) = read(engine, "SELECT address FROM routes WHERE id = %s", made.routes[2])
    assert new["address"]
    assert WOKEN in woken(redis_client)
    assert waiting(redis_client, host_queue(HERE)) == [], "what is asked of a host is taken"


def test_the_event_that_was_taken_may_be_sent_again(engine: Engine, waker: Waker, redis_client: redis.Redis) -> None:
    with running(engine, waker, redis_client, start_seconds=0.0):
        for name in ("a", "b"):
            made = make_deployment(engine, "■■|◇", status=PROVISIONING, name=name)
            waker.routes_on([HERE], RouteLifecycleType.START)
            eventually(partial(is_drawn, engine, made.id, "■■|■"))


def test_what_leaves_is_gone_at_once_and_its_handler_is_woken(
    engine: Engine, waker: Waker, redis_client: redis.Redis
) -> None:
    with running(engine, waker, redis_client, start_seconds=60):
        made = make_deployment(engine, "~■|■", status=PROVISIONING)
        waker.routes_on([HERE], RouteLifecycleType.STOP)
        eventually(lambda: read(engine, "SELECT stopped_at FROM routes WHERE id = %s", made.routes[0])[0]["stopped_at"])
    assert woken(redis_client) == [WOKEN]


def test_what_was_there_before_is_begun_without_being_asked_for(
    engine: Engine, waker: Waker, redis_client: redis.Redis
) -> None:
    made = make_deployment(engine, "~■|◇", status=PROVISIONING)
    with running(engine, waker, redis_client, start_seconds=0.0):
        eventually(lambda: drawn(engine, made.id) == "■|■")


def test_it_lives_on_while_redis_is_emptied(engine: Engine, waker: Waker, redis_client: redis.Redis) -> None:
    with running(engine, waker, redis_client, start_seconds=0.2):
        made = make_deployment(engine, "■■|◇", status=PROVISIONING)
        waker.routes_on([HERE], RouteLifecycleType.START)
        redis_client.flushall()
        waker.routes_on([HERE], RouteLifecycleType.START)
        eventually(lambda: drawn(engine, made.id) == "■■|■")


def test_each_of_its_hosts_is_asked_by_its_own_queue(engine: Engine, waker: Waker, redis_client: redis.Redis) -> None:
    with running(engine, waker, redis_client, start_seconds=0.0):
        made = make_deployment(engine, "■■|◇", status=PROVISIONING)
        write(engine, "UPDATE routes SET host = %s WHERE id = %s", THERE, made.routes[2])
        waker.routes_on([THERE], RouteLifecycleType.START)
        eventually(lambda: drawn(engine, made.id) == "■■|■")
        assert waiting(redis_client, host_queue(THERE)) == []
