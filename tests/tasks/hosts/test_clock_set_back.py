"""The clock of Postgres is set back by an hour, as by a failover: nothing hangs that long, and nothing ends early."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import Engine
from structlog.testing import capture_logs

from db.clock_reset import _OWNERS
from db.connection.transactions import in_transaction, transaction
from db.proxies.acks import SeenProxy, begin_publishing, list_proxies, note_proxies, note_publisher
from domain.revisions.revision import RevisionSpec
from tasks.hosts.heartbeat import Heartbeat
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tests.support.faults.shifted_clock import ShiftedClock, shifted_clock
from tests.support.rows.databases import copy_of, engine_on, migrated_template
from tests.support.rows.deployments import HERE, ask, read, write
from tests.support.rows.hosts import LOOKS, look, up
from tests.support.rows.sent_statements import sent_by
from tests.support.stack.servers import EmbeddedServer, embedded_postgres
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.workers.replicas import STUBBORN, Runtimes, make_route, route, until_started
from tests.support.workers.runtimes import log_of

AN_HOUR = 3600


@pytest.fixture(scope="module")
def clock() -> Iterator[ShiftedClock]:
    """That of Postgres."""
    with shifted_clock() as clock:
        yield clock


@pytest.fixture(scope="module")
def server(clock: ShiftedClock, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedServer, str]]:
    with embedded_postgres(tmp_path_factory.mktemp("postgres"), environment=clock.environment) as server:
        yield server, migrated_template(server)


@pytest.fixture
def engine(server: tuple[EmbeddedServer, str], clock: ShiftedClock) -> Iterator[Engine]:
    """On a database whose clock is an hour ahead."""
    clock.set(AN_HOUR)
    with copy_of(server[1], server[0]) as url:
        made = engine_on(url)
        yield made
        made.dispose()


@pytest.fixture
def signs(engine: Engine) -> Heartbeat:
    """Of a worker that has shown some before the clock is set back."""
    made = Heartbeat(engine, HERE, "127.0.0.1")
    with capture_logs() as told:
        made.show()
    assert [line["seconds_ahead"] for line in told] == [pytest.approx(-AN_HOUR, abs=2)]
    return made


def set_back(clock: ShiftedClock, signs: Heartbeat) -> None:
    clock.set(0)
    with capture_logs() as told:
        signs.show()
    assert [line["seconds"] for line in told if "seconds" in line] == [pytest.approx(AN_HOUR, abs=2)]


def test_a_replica_that_was_asked_to_end_is_killed_after_its_grace_and_not_before(
    engine: Engine, runtimes: Runtimes, waker: Waker, clock: ShiftedClock, signs: Heartbeat
) -> None:
    here = HostReplicas(engine, runtimes, waker, HERE, timedelta(seconds=5))
    route_id = make_route(engine, {"command": list(STUBBORN), "drain_seconds": 0, "stop_grace_seconds": 1})
    until_started(here)
    log_of(runtimes["process"], route_id, "up")
    ask(engine, "destroy", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    eventually(lambda: here.stop() and route(engine, route_id)["stop_requested_at"])
    set_back(clock, signs)
    again = route(engine, route_id)["stop_requested_at"]
    eventually(lambda: not here.stop())
    assert (route(engine, route_id)["stopped_at"] - again).total_seconds() >= 1


def test_a_host_that_died_before_it_is_silent_all_the_same(engine: Engine, clock: ShiftedClock) -> None:
    up(engine, "dead")
    clock.set(0)
    assert [look(engine) for _ in range(LOOKS)] == [([], [])] * (LOOKS - 1) + [(["dead"], [])]
    up(engine, "dead")
    assert look(engine) == ([], ["dead"])


def test_live_proxies_stay_live_and_one_that_is_gone_is_silent_in_its_time(
    engine: Engine, clock: ShiftedClock, signs: Heartbeat
) -> None:
    def live() -> dict[str, bool]:
        return {proxy.node_id: proxy.is_live for proxy in in_transaction(engine, list_proxies)}

    in_transaction(engine, partial(begin_publishing, publisher_id="gone"))
    in_transaction(
        engine, partial(note_proxies, proxies=[SeenProxy("edge", "envoy", 0.5), SeenProxy("gone", "envoy", 0.5)])
    )
    clock.set(0)
    in_transaction(engine, partial(note_publisher, publisher_id="here"))
    in_transaction(engine, partial(note_proxies, proxies=[SeenProxy("edge", "envoy", 60)]))
    assert live() == {"edge": True, "gone": True}, "a server's sign that lies ahead makes nobody silent"
    set_back(clock, signs)

    def only_edge_is_live() -> bool:
        in_transaction(engine, partial(note_publisher, publisher_id="here"))
        return live() == {"edge": True, "gone": False}

    eventually(only_edge_is_live)


def test_what_is_right_is_not_written_to(engine: Engine, signs: Heartbeat) -> None:
    make_route(engine, RevisionSpec(command=("true",)).model_dump(mode="json"))
    write(engine, "UPDATE deployments SET due_at = NULL")
    before = read(engine, "SELECT version, due_at FROM deployments")
    signs.show()
    signs.show()
    assert read(engine, "SELECT version, due_at FROM deployments") == before


def test_of_many_workers_that_see_it_one_counts_and_nobody_waits(
    engine: Engine, clock: ShiftedClock, signs: Heartbeat
) -> None:
    others = [Heartbeat(engine, f"host-{number}", "127.0.0.1") for number in range(3)]
    sent = sent_by(engine)
    for giver in others:
        giver.show()
    assert counts(sent) == len(others), "each saw a time that nobody has counted from since"
    clock.set(0)
    with transaction(engine) as connection:
        holding = connection.execute("UPDATE installation SET counted_at = counted_at")  # as who counts right now
        assert holding.rowcount == 1
        sent.clear()
        for giver in (signs, *others):
            giver.show()
        assert counts(sent) == 0
    for giver in (signs, *others):
        giver.show()
    assert counts(sent) == 1


def test_who_could_not_count_does_so_at_a_later_sign_of_life(engine: Engine, clock: ShiftedClock) -> None:
    giver, route_id = Heartbeat(engine, HERE, "127.0.0.1"), make_route(engine, {"command": ["true"]})
    write(engine, "UPDATE routes SET started_at = clock_timestamp()")
    clock.set(0)
    with transaction(engine) as connection:
        connection.execute("LOCK TABLE installation IN ACCESS EXCLUSIVE MODE")
        assert connection.execute("SELECT").rowcount == 1  # so it is locked
        with pytest.raises(psycopg.errors.LockNotAvailable):
            giver.show()
    assert is_ahead(engine, route_id)
    giver.show()
    assert not is_ahead(engine, route_id)


def counts(sent: Sequence[object]) -> int:
    return list(sent).count(_OWNERS)


def is_ahead(engine: Engine, route_id: UUID) -> bool:
    (found,) = read(engine, "SELECT started_at > clock_timestamp() AS ahead FROM routes WHERE id = %s", route_id)
    return bool(found["ahead"])
