"""Simulated replicas: one process plays a worker host. What it starts is healthy a fixed time later, and nothing runs.

It takes the looks that Rollway asks its host for from the host's queue, and makes them in bulk, with the functions and
wakes that a worker's own looks use; so everything but processes and probes is real.
"""

import argparse
import base64
import json
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, takewhile
from queue import Empty, SimpleQueue
from uuid import UUID

import redis
from redis.exceptions import RedisError
from sqlalchemy import Engine

from db.connection.engine import in_transaction, make_engine
from db.connection.settings import DatabaseSettings
from db.locking.statuses import statuses_of
from db.proxies.acks import release_drained
from db.replicas.reports import RouteReport, apply_reports
from db.replicas.routes import RouteRow, record_stopped, routes_to_start, routes_to_stop
from domain.model.states import RouteStatus
from domain.replicas.events import RouteLifecycleType
from tasks.hosts.signs_of_life import SignsGiver, keep_showing_signs_of_life
from tasks.redis.wake import Waker, route_key
from tasks.settings import KEY_PREFIX
from tasks.wire.queues import host_queue

HOST = "simulated"
ADDRESS = "127.0.0.1:9"
"""Of every replica: a port that discards."""
AT_ONCE = 250
"""Routes in one transaction, so that nobody waits long for the deployments that it locks."""
READY = "the world begins"
IDLE_SECONDS = 1.0
_LISTEN_SECONDS = 0.2
_RETRY_SECONDS = 0.05


class World:
    """The host `host`, for one thread. `start_seconds`: from a replica's start to its health."""

    def __init__(self, engine: Engine, waker: Waker, client: redis.Redis, host: str, start_seconds: float) -> None:
        self._engine = engine
        self._waker = waker
        self._client = client
        self._host = host
        self._start_seconds = start_seconds
        self._queue = KEY_PREFIX + host_queue(host)
        self._starting: deque[tuple[float, RouteReport]] = deque()

    def run(self, until: threading.Event) -> None:
        """Do what is asked for, and what time brings, until the end is asked for."""
        asked: SimpleQueue[RouteLifecycleType] = SimpleQueue()
        listener = threading.Thread(target=self._listen, args=(asked, until), name="host queue", daemon=True)
        listener.start()
        self.look_at_everything()
        while not until.is_set():
            kind = None
            with suppress(Empty):
                kind = asked.get(timeout=self._patience())
            self._report_healthy()
            if kind is RouteLifecycleType.START:
                self.start()
            elif kind is RouteLifecycleType.STOP:
                self.stop()
        listener.join()

    def look_at_everything(self) -> None:
        """What was there before: replicas that were starting begin again."""
        self.start()
        self.stop()

    def start(self) -> None:
        """Start the replicas of all new routes of this host."""
        while True:
            routes = in_transaction(self._engine, partial(routes_to_start, host=self._host, limit=AT_ONCE))
            if not routes:
                return
            due = time.monotonic() + self._start_seconds
            began = [_report(route, address=ADDRESS, handle=str(route.id)) for route in routes]
            self._write(began)
            self._starting.extend(
                (
                    due,
                    RouteReport(
                        route.route_id, route.deployment_id, route.was, RouteStatus.HEALTHY, reason="simulated"
                    ),
                )
                for route in began
            )
            self._report_healthy()

    def stop(self) -> None:
        """Let replicas on their way out be gone, once no proxy knows them."""
        in_transaction(self._engine, release_drained)
        routes = in_transaction(self._engine, partial(routes_to_stop, host=self._host))
        gone = [route.id for route in routes if route.out_of_traffic_at or route.status is RouteStatus.FAILED]
        for first in range(0, len(gone), AT_ONCE):
            self._let_go(gone[first : first + AT_ONCE])

    def _let_go(self, route_ids: Sequence[UUID]) -> None:
        statuses = in_transaction(self._engine, lambda c: statuses_of(c, record_stopped(c, route_ids)))
        self._waker.deployments(statuses)

    def _report_healthy(self) -> None:
        """All whose time has come."""
        while some := self._due(time.monotonic()):
            self._write(some)

    def _due(self, now: float) -> list[RouteReport]:
        """Those whose time came first, some at a time."""
        due = sum(1 for _ in islice(takewhile(lambda starting: starting[0] <= now, self._starting), AT_ONCE))
        return [self._starting.popleft()[1] for _ in range(due)]

    def _write(self, reports: Sequence[RouteReport]) -> None:
        statuses = in_transaction(self._engine, lambda c: statuses_of(c, apply_reports(c, reports)))
        self._waker.after_change(statuses)

    def _patience(self) -> float:
        """Seconds until the next replica's time comes."""
        wait = self._starting[0][0] - time.monotonic() if self._starting else IDLE_SECONDS
        return min(IDLE_SECONDS, max(0.0, wait))

    def _listen(self, asked: SimpleQueue[RouteLifecycleType], until: threading.Event) -> None:
        """A thread of its own: Redis ends a wait up to 100 ms late, too late for a replica's time."""
        while not until.is_set():
            try:
                taken = self._client.brpop([self._queue], timeout=_LISTEN_SECONDS)
            except RedisError:
                until.wait(_RETRY_SECONDS)
                continue
            if taken is not None:
                kind = _kind(taken[1])
                self._waker.arrived(route_key(kind, self._host))
                asked.put(kind)


def _report(route: RouteRow, address: str, handle: str) -> RouteReport:
    return RouteReport(route.id, route.deployment_id, route.status, route.status, address=address, handle=handle)


def _kind(message: bytes | str) -> RouteLifecycleType:
    """Of a look, from Celery's message."""
    _, arguments, _ = json.loads(base64.b64decode(json.loads(message)["body"]))
    return RouteLifecycleType(arguments["route_lifecycle_type"])


def main() -> None:
    """Until SIGTERM, on the servers of DATABASE_URL and REDIS_URL."""
    parser = argparse.ArgumentParser(prog="python -m bench.world")
    parser.add_argument("--host", default=HOST)
    parser.add_argument("--start-seconds", type=float, default=1.0)
    given = parser.parse_args()
    until = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: until.set())
    engine = make_engine(DatabaseSettings(url=os.environ["DATABASE_URL"]))
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        keep_showing_signs_of_life(SignsGiver(engine, given.host, "127.0.0.1"), until)
        print(READY, flush=True)
        World(engine, Waker(client), client, given.host, given.start_seconds).run(until)


if __name__ == "__main__":
    main()
