"""The look at hosts: what runs on a silent one is degraded, then replaced; whoever waits for it is woken at once."""

from functools import partial
from typing import LiteralString

import redis
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.heartbeats import show_sign_of_life
from domain.model.lifecycle_events import ROUTE_CADENCES, RouteLifecycleType
from tasks.hosts.host_timeouts import look_at_hosts, settle_routes
from tasks.redis.wake import Waker
from tests.support.rows.deployments import HERE, drawn, make_deployment, write
from tests.support.workers.queues import drop_all, waiting

SILENT: LiteralString = "UPDATE hosts SET last_seen_at = clock_timestamp() - interval '1 hour'"
FOUR_LOOKS = 4 * ROUTE_CADENCES[RouteLifecycleType.HOSTS]


def test_a_silent_host_degrades_its_replicas_wakes_their_handler_and_loses_them(
    engine: Engine, waker: Waker, redis_client: redis.Redis
) -> None:
    in_transaction(engine, partial(show_sign_of_life, host=HERE, address="127.0.0.1"))
    made = make_deployment(engine, "■■▲")
    assert look_at_hosts(engine, waker, FOUR_LOOKS) is False
    write(engine, SILENT)
    pictures, woken = [], []
    for _ in range(4):
        look_at_hosts(engine, waker, FOUR_LOOKS)
        pictures.append(drawn(engine, made.id).replace("✗", ""))
        woken.append([arguments["lifecycle_type"] for _, arguments in waiting(redis_client, "lifecycle")])
        drop_all(redis_client, "lifecycle")
        redis_client.flushdb()
    assert pictures == ["■■▲", "△△△", "△△△", ""]
    assert woken == [[], ["check_replica"], [], ["check_replica"]]


def test_however_many_replicas_are_degraded_the_host_is_not_lost_any_sooner(engine: Engine, waker: Waker) -> None:
    in_transaction(engine, partial(show_sign_of_life, host=HERE, address="127.0.0.1"))
    made = make_deployment(engine, "■■▲")
    write(engine, SILENT)
    for _ in range(2):
        look_at_hosts(engine, waker, FOUR_LOOKS)
    for _ in range(10):
        settle_routes(engine, waker, FOUR_LOOKS)
    assert drawn(engine, made.id) == "△△△"
