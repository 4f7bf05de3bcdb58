"""Worker hosts: asks them to work, and replaces what ran on those that fell silent."""

from collections.abc import Iterable
from functools import partial

import structlog
from psycopg import Connection
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.heartbeats import HostsTurned, has_silent, look_at_signs_of_life
from db.replicas.host_placement import MOST_AT_ONCE, hosts_with_work, place_routes
from db.replicas.lost_hosts import degrade_silent_routes, fail_routes_of_lost_hosts, fail_routes_that_wait_in_vain
from domain.model.lifecycle_events import RouteLifecycleType
from domain.replicas.host_choice import FRESH_SECONDS, looks_until_degraded, looks_until_down
from tasks.cycle.change_and_wake import change_and_wake
from tasks.redis.wake import Waker, route_key

_AT_ONCE = 500
_log = structlog.get_logger(__name__)


def ask_hosts(engine: Engine, waker: Waker, *kinds: RouteLifecycleType) -> None:
    """Wake these looks on every host that is up and has work for them; for starts, first place those without a host."""

    def work(connection: Connection) -> tuple[int, list[str]]:
        placed_count = place_routes(connection, MOST_AT_ONCE) if RouteLifecycleType.START in kinds else 0
        return placed_count, keys_of_work(connection, kinds)

    placed_count, keys = in_transaction(engine, work)
    waker.send(keys)
    if placed_count == MOST_AT_ONCE:
        waker.routes(RouteLifecycleType.START)


def keys_of_work(connection: Connection, kinds: Iterable[RouteLifecycleType]) -> list[str]:
    """The keys of these looks on the hosts that are up and have work for them."""
    return [route_key(kind, host) for kind, host in hosts_with_work(connection, kinds)]


def look_at_hosts(engine: Engine, waker: Waker, silence_seconds: float) -> bool:
    """Count who is silent or deaf, welcome who is not any more, and begin to degrade or fail what is on the others.

    True while `settle_routes` may find more of them. Each call counts as one look, so only the alarm calls it.
    """
    looks = looks_until_down(silence_seconds)

    def count(connection: Connection) -> tuple[HostsTurned, bool]:
        return look_at_signs_of_life(connection, FRESH_SECONDS, looks), has_silent(connection)

    turned, is_any_silent = in_transaction(engine, count)
    for host in turned.down:
        _log.error("host is down; its replicas are replaced", host=host, silence_seconds=silence_seconds)
    for host in turned.deaf:
        _log.error("Redis does not answer host; it gets no new replicas, and what it runs continues", host=host)
    for host in (back := turned.back | turned.asked):
        _log.warning("host is back; what it should no longer run is stopped", host=host)
    waker.routes_on(back, RouteLifecycleType.STOP, RouteLifecycleType.SWEEP)
    if back:
        waker.routes(RouteLifecycleType.START)
    return is_any_silent and settle_routes(engine, waker, silence_seconds)


def settle_routes(engine: Engine, waker: Waker, silence_seconds: float) -> bool:
    """Degrade routes of silent hosts, fail those of lost ones and those that wait on deaf ones, some at a time.

    True while there may be more.
    """
    looks = looks_until_degraded(silence_seconds)
    degraded = change_and_wake(engine, waker, partial(degrade_silent_routes, looks=looks, limit=_AT_ONCE))
    failed = change_and_wake(engine, waker, partial(fail_routes_of_lost_hosts, limit=_AT_ONCE))
    waiting = change_and_wake(engine, waker, partial(fail_routes_that_wait_in_vain, limit=_AT_ONCE))
    return bool(degraded or failed or waiting)
