"""Wakes: one of each kind in the queue, sent again once it has arrived, and no harm done without Redis."""

import time

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from structlog.testing import capture_logs

from domain.handlers.dispatch import HANDLERS
from domain.model.lifecycle_events import DoDeploymentLifecycleEvent, RouteLifecycleType
from domain.replicas.host_choice import EXTERNAL
from tasks.messaging.queues import DO_IF_NEEDED_TASK, DO_ROUTE_TASK, host_queue
from tasks.redis.wake import MOST_WAITING, Waker, route_key
from tests.support.pictures.pictures import DESTROYED, PROVISIONING, READY, ROLLING_BACK
from tests.support.rows.deployments import NOBODY
from tests.support.stack.waiting import eventually
from tests.support.workers.queues import drop_all, expiring, waiting


@pytest.fixture
def without_redis() -> Waker:
    """A waker whose Redis is not there, with the client that a worker makes."""
    return Waker(redis.Redis.from_url(NOBODY, socket_connect_timeout=2, retry=Retry(NoBackoff(), 1)))


def test_a_status_wakes_the_handler_that_looks_at_it(redis_client: redis.Redis, waker: Waker) -> None:
    waker.deployments([PROVISIONING])
    waker.deployments([READY])
    waker.deployments([DESTROYED])
    assert waiting(redis_client, "lifecycle") == [
        (DO_IF_NEEDED_TASK, {"lifecycle_type": "deploying", "sub_step": "provisioning"}),
        (DO_IF_NEEDED_TASK, {"lifecycle_type": "check_replica", "sub_step": None}),
    ]


def test_a_look_at_routes_goes_into_the_queue_of_routes(redis_client: redis.Redis, waker: Waker) -> None:
    waker.routes(RouteLifecycleType.START, RouteLifecycleType.STOP)
    assert waiting(redis_client, "lifecycle") == []
    assert waiting(redis_client, "routes") == [
        (DO_ROUTE_TASK, {"route_lifecycle_type": "start"}),
        (DO_ROUTE_TASK, {"route_lifecycle_type": "stop"}),
    ]


def test_one_of_each_kind_is_queued_and_the_next_is_sent_once_it_has_arrived(
    redis_client: redis.Redis, waker: Waker
) -> None:
    for _ in range(5):
        waker.deployments([PROVISIONING, ROLLING_BACK])
    assert drop_all(redis_client, "lifecycle") == 2
    waker.deployments([PROVISIONING])
    assert drop_all(redis_client, "lifecycle") == 0
    waker.arrived("deploying/provisioning")
    waker.deployments([PROVISIONING, ROLLING_BACK])
    assert drop_all(redis_client, "lifecycle") == 1


def test_a_wake_whose_message_was_lost_holds_back_the_next_for_a_few_seconds_only(
    redis_client: redis.Redis, waker: Waker
) -> None:
    waker.deployments([PROVISIONING])
    assert 0 < int(redis_client.pttl("rollway:queued:deploying/provisioning")) <= 5000


def test_no_event_has_an_age_that_a_worker_could_judge(redis_client: redis.Redis, waker: Waker) -> None:
    waker.deployments([PROVISIONING])
    assert expiring(redis_client, "lifecycle") == [None]


def test_a_queue_that_nobody_reads_does_not_grow_without_end(redis_client: redis.Redis, waker: Waker) -> None:
    for _ in range(MOST_WAITING + 20):
        waker.routes_on(["away"], RouteLifecycleType.PROBE)
        waker.arrived(route_key(RouteLifecycleType.PROBE, "away"))
    assert len(waiting(redis_client, host_queue("away"))) == MOST_WAITING
    waker.routes_on(["here"], RouteLifecycleType.PROBE)
    assert len(waiting(redis_client, host_queue("here"))) == 1, "the others go on"


def test_every_event_that_a_handler_or_a_look_answers_to_can_be_sent(redis_client: redis.Redis, waker: Waker) -> None:
    keys = [*map(str, HANDLERS), *map(route_key, RouteLifecycleType)]
    waker.send(keys)
    assert len(waiting(redis_client, "lifecycle")) == len(HANDLERS)
    assert len(waiting(redis_client, "routes")) == len(RouteLifecycleType)
    for _, arguments in waiting(redis_client, "lifecycle"):
        assert DoDeploymentLifecycleEvent.parse(arguments["lifecycle_type"], arguments["sub_step"]) in HANDLERS


def test_a_look_on_a_host_goes_to_the_queue_of_that_host_alone(redis_client: redis.Redis, waker: Waker) -> None:
    waker.routes_on(["a", "b"], RouteLifecycleType.START, RouteLifecycleType.STOP)
    waker.routes_on(["a"], RouteLifecycleType.START)
    for host in ("a", "b"):
        assert [arguments for _, arguments in waiting(redis_client, host_queue(host))] == [
            {"route_lifecycle_type": "start", "host": host},
            {"route_lifecycle_type": "stop", "host": host},
        ]
    assert waiting(redis_client, "routes") == []


def test_external_replicas_are_looked_at_by_any_worker(redis_client: redis.Redis, waker: Waker) -> None:
    waker.routes_on([EXTERNAL], RouteLifecycleType.START)
    assert waiting(redis_client, "routes")[0][1] == {"route_lifecycle_type": "start", "host": EXTERNAL}


def test_of_two_beats_in_one_interval_one_counts(redis_client: redis.Redis, waker: Waker) -> None:
    assert waker.first_of_interval("scaling", 60)
    assert not waker.first_of_interval("scaling", 60)
    assert waker.first_of_interval("destroying", 60)
    assert waker.first_of_interval("scaling", 0.2), "the other tick is another one"
    eventually(lambda: redis_client.keys("rollway:tick:scaling:0.2") == [])
    assert waker.first_of_interval("scaling", 0.2)


def test_without_redis_a_wake_is_lost_quickly_quietly_and_told(without_redis: Waker) -> None:
    began = time.monotonic()
    with capture_logs() as told:
        without_redis.deployments([PROVISIONING])
        without_redis.arrived("deploying/provisioning")
    assert time.monotonic() - began < 30
    assert [(line["log_level"], line["key"]) for line in told] == [("warning", "deploying/provisioning")] * 2
