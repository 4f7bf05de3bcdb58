"""The probe pass at work on services that hang, break and mend, and on runtimes that give no answer."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psutil
import pytest
import redis
from sqlalchemy import Engine

from db.engine import in_transaction
from db.replicas.routes import running_routes
from runtime.base import Runtime
from runtime.docker import DockerRuntime
from runtime.external import ExternalRuntime
from runtime.probes import Prober
from runtime.process import ProcessRuntime
from tasks.redis.wake import Waker
from tasks.replicas.probing import ProbePass
from tasks.replicas.start_stop import HostReplicas
from tasks.replicas.timetable import Timetable
from tests.support.deployments import HERE, NOBODY, make_deployment, read, write
from tests.support.pictures import SCALING
from tests.support.runtimes import HTTP_SERVICE, pid_of
from tests.support.waiting import eventually

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
BROKEN = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"

Looks = Callable[..., ProbePass]


class Service:
    """Sends `reply` to every connection and closes it; while it is None it accepts and never says a word."""

    def __init__(self, server: socket.socket) -> None:
        self.reply: bytes | None = OK
        self.connections: list[socket.socket] = []
        self.address = f"127.0.0.1:{server.getsockname()[1]}"
        threading.Thread(target=self._serve, args=(server,), daemon=True).start()

    def _serve(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                self.connections.append(connection)
                if self.reply is not None:
                    with suppress(OSError):
                        connection.recv(65536)
                        connection.sendall(self.reply)
                        connection.shutdown(socket.SHUT_WR)


@contextmanager
def serving() -> Iterator[Service]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        service = Service(server)
        yield service
        server.shutdown(socket.SHUT_RDWR)
        for connection in service.connections:
            connection.close()


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as one:
        yield one


@pytest.fixture
def prober() -> Iterator[Prober]:
    with closing(Prober()) as one:
        yield one


@pytest.fixture
def begin(engine: Engine, waker: Waker, client: redis.Redis, prober: Prober) -> Iterator[Looks]:
    """A pass like any other: it shares the prober of its worker process with those before it."""
    external = ExternalRuntime(lambda *_: None)

    def make(
        runtimes: dict[str, Runtime] | None = None, prober: Prober = prober, client: redis.Redis = client
    ) -> ProbePass:
        return ProbePass(engine, runtimes or {"external": external}, waker, client, HERE, prober)

    yield make
    external.close()


def replica(engine: Engine, address: str | None, picture: str = "■", runtime: str = "external", **check: Any) -> UUID:
    """One that another system runs, so that it is always there; healthy unless drawn otherwise."""
    parts: dict[str, Any] = {
        "external": {"external": {"webhook": "http://127.0.0.1:1/"}},
        "docker": {"docker": {"image": "web:1", "port": 80}},
    }
    spec = {"runtime": runtime, **parts[runtime], "health_check": {"interval_seconds": 0.1, **check}}
    name = f"d{read(engine, 'SELECT count(*) FROM deployments')[0]['count']}"
    route_id = make_deployment(engine, picture, name=name, n=1, status=SCALING, spec=spec).routes[0]
    write(engine, "UPDATE routes SET address = %s WHERE id = %s", address, route_id)
    write(engine, "UPDATE routes SET started_at = coalesce(started_at, clock_timestamp()) WHERE id = %s", route_id)
    return route_id


def status(engine: Engine, route_id: UUID) -> str:
    return str(read(engine, "SELECT status FROM routes WHERE id = %s", route_id)[0]["status"])


def versions(engine: Engine) -> list[dict[str, Any]]:
    """Another row version, or a lock on one, and this is another list."""
    return read(
        engine,
        """
        SELECT id, ctid::text, xmin::text, xmax::text FROM routes
        UNION ALL SELECT id, ctid::text, xmin::text, xmax::text FROM deployments ORDER BY 1
        """,
    )


def until(probing: ProbePass, condition: Callable[[], bool], seconds: float = 10) -> None:
    """Look as a worker does, and never for long."""

    def look() -> bool:
        began = time.monotonic()
        probing.look()
        assert time.monotonic() - began < 3, "a look waits for nobody"
        return condition()

    eventually(look, seconds)


def test_nothing_is_written_and_no_row_is_locked_when_nothing_changes(
    engine: Engine, service: Service, begin: Looks
) -> None:
    with serving() as sick:
        sick.reply = BROKEN
        replica(engine, service.address)
        unhealthy = replica(engine, sick.address, failure_threshold=1)
        probing = begin()
        until(probing, lambda: status(engine, unhealthy) == "unhealthy")
        before, seen = versions(engine), len(sick.connections)
        until(probing, lambda: len(service.connections) >= 5 and len(sick.connections) >= seen + 5)
        assert versions(engine) == before
        service.reply = BROKEN
        until(probing, lambda: versions(engine) != before)


def test_a_replica_that_hangs_delays_nobody(engine: Engine, service: Service, begin: Looks) -> None:
    with serving() as silent:
        silent.reply = None
        hanging = [replica(engine, silent.address, timeout_seconds=300) for _ in range(5)]
        other = replica(engine, service.address, failure_threshold=2)
        probing = begin()
        until(probing, lambda: len(silent.connections) == 5)
        service.reply = BROKEN
        until(probing, lambda: status(engine, other) == "unhealthy", 3)
        service.reply = OK
        until(probing, lambda: status(engine, other) == "healthy", 3)
        assert len(silent.connections) == 5, "one probe of a route at a time"
        assert {status(engine, one) for one in hanging} == {"healthy"}


def test_a_replica_that_hangs_for_longer_than_any_pass_becomes_unhealthy(
    engine: Engine, service: Service, begin: Looks
) -> None:
    service.reply = None
    route_id = replica(engine, service.address, timeout_seconds=0.5, failure_threshold=3)
    passes: list[ProbePass] = []

    def one_look_of_a_new_pass() -> bool:
        passes.append(begin())
        passes[-1].look()
        return status(engine, route_id) == "unhealthy"

    eventually(one_look_of_a_new_pass, 15)
    assert len(passes) > 10
    (row,) = read(engine, "SELECT status_reason FROM routes")
    assert row["status_reason"] == "GET /health: no answer within 0.5 s"


def test_the_first_probe_after_a_silence_makes_a_degraded_replica_healthy_or_unhealthy(
    engine: Engine, service: Service, begin: Looks
) -> None:
    with serving() as sick:
        sick.reply = BROKEN
        well, ill = replica(engine, service.address), replica(engine, sick.address, failure_threshold=1)
        probing = begin()
        until(probing, lambda: (status(engine, well), status(engine, ill)) == ("healthy", "unhealthy"))
        write(engine, "UPDATE routes SET status = 'degraded'")
        until(probing, lambda: (status(engine, well), status(engine, ill)) == ("healthy", "unhealthy"))
        rows = read(engine, "SELECT status_reason FROM routes ORDER BY id")
        assert [row["status_reason"] for row in rows] == ["GET /health answered 200", "GET /health answered 503"]


def test_as_many_failures_as_the_threshold_says_make_a_replica_unhealthy(
    engine: Engine, service: Service, begin: Looks
) -> None:
    service.reply = BROKEN
    route_id = replica(engine, service.address, failure_threshold=5)
    until(begin(), lambda: status(engine, route_id) == "unhealthy")
    assert 5 <= len(service.connections) <= 6, "one more may be on its way"


def test_failures_in_a_row_are_counted_and_a_success_clears_them(
    engine: Engine, service: Service, begin: Looks
) -> None:
    route_id = replica(engine, service.address, failure_threshold=100)

    def streak() -> int:
        return int(read(engine, "SELECT probe_streak FROM routes WHERE id = %s", route_id)[0]["probe_streak"])

    service.reply = BROKEN
    until(begin(), lambda: streak() == 2)
    until(begin(), lambda: streak() >= 4)
    service.reply = OK
    until(begin(), lambda: streak() == 0)


def test_two_workers_that_look_in_turn_probe_a_replica_once_in_an_interval(
    engine: Engine, service: Service, begin: Looks
) -> None:
    replica(engine, service.address, interval_seconds=0.5)
    with closing(Prober()) as another:
        passes = [begin(), begin(prober=another)]
        ends = time.monotonic() + 2.2
        while time.monotonic() < ends:
            for one in passes:
                one.look()
    assert 3 <= len(service.connections) <= 6


def test_without_redis_a_pass_keeps_to_the_intervals_by_itself(engine: Engine, service: Service, begin: Looks) -> None:
    replica(engine, service.address, interval_seconds=0.5)
    with redis.Redis.from_url(NOBODY) as nobody:
        probing = begin(client=nobody)
        ends = time.monotonic() + 2.2
        while time.monotonic() < ends:
            probing.look()
    assert 3 <= len(service.connections) <= 7


def test_the_end_of_a_process_is_noticed_within_about_a_second_however_seldom_it_is_probed(
    engine: Engine, waker: Waker, runtimes: dict[str, ProcessRuntime], begin: Looks
) -> None:
    check = {"interval_seconds": 3600, "start_deadline_seconds": 30}
    spec = {"command": list(HTTP_SERVICE), "health_check": check}
    route_id = make_deployment(engine, "◇", n=1, status=SCALING, spec=spec).routes[0]
    HostReplicas(engine, runtimes, waker, HERE, timedelta(seconds=5)).start()
    probing = begin({**runtimes})
    until(probing, lambda: status(engine, route_id) == "healthy")
    psutil.Process(pid_of(runtimes["process"].find(route_id))).kill()
    killed = time.monotonic()
    until(probing, lambda: status(engine, route_id) == "failed")
    assert time.monotonic() - killed < 2.5


def test_a_runtime_that_gives_no_answer_fails_nobody_and_holds_up_no_other(
    engine: Engine, service: Service, runtimes: dict[str, ProcessRuntime], begin: Looks
) -> None:
    service.reply = BROKEN
    runs = replica(engine, service.address, runtime="docker", failure_threshold=1)
    starts = replica(engine, service.address, "◇", runtime="docker", start_deadline_seconds=0.5)
    gone = make_deployment(engine, "■", n=1, status=SCALING).routes[0]
    probing = begin({**runtimes, "docker": DockerRuntime(HERE, "unix:///no/such/docker.sock")})
    until(probing, lambda: status(engine, runs) == "unhealthy")
    until(probing, lambda: status(engine, gone) == "failed")
    began = time.monotonic()
    until(probing, lambda: time.monotonic() - began > 1)
    assert status(engine, starts) == "provisioning", "its start deadline is over, but nothing is known of it"
    service.reply = OK
    until(probing, lambda: status(engine, runs) == status(engine, starts) == "healthy")


def test_a_replica_without_an_address_is_not_probed_and_fails_at_its_start_deadline(
    engine: Engine, service: Service, begin: Looks
) -> None:
    reported = replica(engine, None, "◇")
    never = replica(engine, None, "◇", start_deadline_seconds=1)
    probing = begin()
    until(probing, lambda: status(engine, never) == "failed")
    (row,) = read(engine, "SELECT status_reason FROM routes WHERE id = %s", never)
    assert row["status_reason"] == "not healthy within 1 s of its start: no probe was answered yet"
    assert status(engine, reported) == "provisioning"
    write(engine, "UPDATE routes SET address = %s WHERE id = %s", service.address, reported)
    until(probing, lambda: status(engine, reported) == "healthy")


def test_a_start_deadline_tells_what_was_seen_last(engine: Engine, service: Service, begin: Looks) -> None:
    service.reply = BROKEN
    route_id = replica(engine, service.address, "◇", start_deadline_seconds=1)
    until(begin(), lambda: status(engine, route_id) == "failed")
    (row,) = read(engine, "SELECT status_reason FROM routes")
    assert row["status_reason"] == "not healthy within 1 s of its start: GET /health answered 503"


def test_a_replica_that_starts_during_a_pass_is_seen_at_its_next_look(
    engine: Engine, service: Service, begin: Looks
) -> None:
    probing = begin()
    assert probing.look() is False
    route_id = replica(engine, service.address, "◇")
    assert probing.look() is True
    eventually(lambda: service.connections)
    until(probing, lambda: status(engine, route_id) == "healthy")


def test_a_pass_goes_on_while_probes_are_due_every_moment(engine: Engine, service: Service, begin: Looks) -> None:
    replica(engine, service.address)
    probing = begin()
    until(probing, lambda: not probing.look())
    replica(engine, service.address)
    replica(engine, service.address)
    probing = begin()
    assert all(probing.look() for _ in range(20)), "30 a second"


def test_many_that_start_take_turns(engine: Engine) -> None:
    spec = {"command": ["serve"], "health_check": {}}
    make_deployment(engine, "◇" * 120, n=120, status=SCALING, spec=spec)
    write(engine, "UPDATE routes SET started_at = clock_timestamp(), address = '127.0.0.1:1'")
    routes = in_transaction(engine, lambda connection: running_routes(connection, HERE, only_starting=True))
    now, timetable = datetime.now(UTC) + timedelta(seconds=1), Timetable()
    timetable.renew_starting(routes)
    looks = [{target.route_id for target in timetable.due(now, now)} for _ in range(3)]
    assert [len(one) for one in looks] == [50, 50, 50]
    assert set().union(*looks) == {route.id for route in routes}
