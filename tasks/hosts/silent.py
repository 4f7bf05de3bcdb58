"""Worker hosts: asks them to work, and replaces what ran on those that fell silent."""

from functools import partial

import structlog
from psycopg import Connection
from sqlalchemy import Engine

from db.connection.engine import in_transaction
from db.placing import MOST_AT_ONCE
from db.replicas.hosts import (
    degrade_silent_routes,
    fail_routes_of_lost_hosts,
    hosts_with_work,
    look_at_signs_of_life,
    place_routes,
)
from domain.replicas.events import RouteLifecycleType
from domain.replicas.silence import FRESH_SECONDS, looks_until_degraded, looks_until_down
from tasks.cycle.change import change_and_wake
from tasks.redis.wake import Waker, route_key

_AT_ONCE = 500
_log = structlog.get_logger(__name__)


def ask_hosts(engine: Engine, waker: Waker, *kinds: RouteLifecycleType) -> None:
    """Wake these looks on every host that is up and has work for them; for starts, first place those without a host."""

    def work(connection: Connection) -> tuple[int, dict[RouteLifecycleType, list[str]]]:
        placed = place_routes(connection, MOST_AT_ONCE) if RouteLifecycleType.START in kinds else 0
        return placed, {kind: hosts_with_work(connection, kind) for kind in kinds}

    placed, hosts = in_transaction(engine, work)
    waker.send(route_key(kind, host) for kind in kinds for host in hosts[kind])
    if placed == MOST_AT_ONCE:
        waker.routes(RouteLifecycleType.START)


def look_at_hosts(engine: Engine, waker: Waker, silence_seconds: float) -> bool:
    """Count who is silent, welcome hosts that are back, and begin to degrade or fail what runs on silent ones.

    True while `settle_routes` may find more of them. Each call counts as one look, so only the alarm calls it.
    """
    looks = looks_until_down(silence_seconds)
    count = partial(look_at_signs_of_life, fresh_seconds=FRESH_SECONDS, looks=looks)
    down, back = in_transaction(engine, count)
    for host in down:
        _log.error("host is down; its replicas are replaced", host=host, silence_seconds=silence_seconds)
    for host in back:
        _log.warning("host is back; what it should no longer run is stopped", host=host)
    waker.routes_on(back, RouteLifecycleType.STOP, RouteLifecycleType.SWEEP)
    if back:
        waker.routes(RouteLifecycleType.START)
    return settle_routes(engine, waker, silence_seconds)


def settle_routes(engine: Engine, waker: Waker, silence_seconds: float) -> bool:
    """Degrade the routes of silent hosts and fail those of lost ones, some at a time. True while there may be more."""
    looks = looks_until_degraded(silence_seconds)
    degraded = change_and_wake(engine, waker, partial(degrade_silent_routes, looks=looks, limit=_AT_ONCE))
    failed = change_and_wake(engine, waker, partial(fail_routes_of_lost_hosts, limit=_AT_ONCE))
    return bool(degraded or failed)
