"""Simulated replicas: one process plays worker hosts. What it starts is healthy a fixed time later, and nothing runs.

It takes the looks that Rollway asks its hosts for from their queues, and makes them in bulk, with the functions and
wakes that a worker's own looks use. It shows their signs of life, too; so everything but processes and probes is real.
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

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import in_transaction, make_engine
from db.due_work import statuses_of
from db.proxies.acks import release_drained
from db.replicas.host_routes import RouteRow, record_stopped, routes_to_start, routes_to_stop
from db.replicas.reports import RouteReport, apply_reports
from domain.model.lifecycle_events import RouteLifecycleType
from domain.model.states import RouteStatus
from tasks.hosts.heartbeat import Heartbeat, keep_showing_signs_of_life
from tasks.messaging.queues import host_queue
from tasks.redis.wake import Waker, route_key
from tasks.task_settings import KEY_PREFIX

HOST = "simulated"
"""The first of the hosts; the others have a number behind it."""
ADDRESS = "127.0.0.1:9"
"""Of every replica: a port that discards."""
AT_ONCE = 250
"""Routes in one transaction, so that nobody waits long for the deployments that it locks."""
READY = "the world begins"
IDLE_SECONDS = 1.0
_LISTEN_SECONDS = 0.2
_RETRY_SECONDS = 0.05


def hosts_of(count: int) -> list[str]:
    """The names of so many hosts."""
    return [HOST, *(f"{HOST}-{number}" for number in range(2, count + 1))]


class World:
    """The hosts `hosts`, for one thread. `start_seconds`: from a replica's start to its health."""

    def __init__(
        self, engine: Engine, waker: Waker, client: redis.Redis, hosts: Sequence[str], start_seconds: float
    ) -> None:
        self._engine = engine
        self._waker = waker
        self._client = client
        self._start_seconds = start_seconds
        self._hosts: dict[bytes | str, str] = {(KEY_PREFIX + host_queue(host)).encode(): host for host in hosts}
        self._starting: deque[tuple[float, RouteReport]] = deque()

    def run(self, until: threading.Event) -> None:
        """Do what is asked for, and what time brings, until the end is asked for."""
        asked: SimpleQueue[tuple[RouteLifecycleType, str]] = SimpleQueue()
        listener = threading.Thread(target=self._listen, args=(asked, until), name="host queue", daemon=True)
        listener.start()
        self.look_at_everything()
        while not until.is_set():
            kind, host = None, ""
            with suppress(Empty):
                kind, host = asked.get(timeout=self._patience())
            self._report_healthy()
            if kind is RouteLifecycleType.START:
                self.start(host)
            elif kind is RouteLifecycleType.STOP:
                self.stop(host)
        listener.join()

    def look_at_everything(self) -> None:
        """What was there before: replicas that were starting begin again."""
        for host in self._hosts.values():
            self.start(host)
            self.stop(host)

    def start(self, host: str) -> None:
        """Start the replicas of all new routes of this host."""
        while True:
            routes = in_transaction(self._engine, partial(routes_to_start, host=host, limit=AT_ONCE))
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

    def stop(self, host: str) -> None:
        """Let replicas on their way out be gone, once no proxy knows them."""
        in_transaction(self._engine, release_drained)
        routes = in_transaction(self._engine, partial(routes_to_stop, host=host))
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

    def _listen(self, asked: SimpleQueue[tuple[RouteLifecycleType, str]], until: threading.Event) -> None:
        """A thread of its own: Redis ends a wait up to 100 ms late, too late for a replica's time."""
        while not until.is_set():
            try:
                taken = self._client.brpop([*self._hosts], timeout=_LISTEN_SECONDS)
            except RedisError:
                until.wait(_RETRY_SECONDS)
                continue
            if taken is not None:
                queue, message = taken
                kind, host = _kind(message), self._hosts[queue]
                self._waker.arrived(route_key(kind, host))
                asked.put((kind, host))


def _report(route: RouteRow, address: str, handle: str) -> RouteReport:
    return RouteReport(route.id, route.deployment_id, route.status, route.status, address=address, handle=handle)


def _kind(message: bytes | str) -> RouteLifecycleType:
    """Of a look, from Celery's message."""
    _, arguments, _ = json.loads(base64.b64decode(json.loads(message)["body"]))
    return RouteLifecycleType(arguments["route_lifecycle_type"])


def main() -> None:
    """Until SIGTERM, on the servers of DATABASE_URL and REDIS_URL."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.world")
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--start-seconds", type=float, default=1.0)
    given = parser.parse_args()
    until = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: until.set())
    engine = make_engine(DatabaseSettings(url=os.environ["DATABASE_URL"]))
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        for host in hosts_of(given.hosts):
            keep_showing_signs_of_life(Heartbeat(engine, host, "127.0.0.1"), until)
        print(READY, flush=True)
        World(engine, Waker(client), client, hosts_of(given.hosts), given.start_seconds).run(until)


if __name__ == "__main__":
    main()
