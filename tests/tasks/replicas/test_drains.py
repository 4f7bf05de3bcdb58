"""A replica is asked to end when proxies told that its last answer has ended, or after the longest time for that."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.proxies.acks import Ack, SeenProxy, note_acks, note_proxies, note_publisher
from db.proxies.measurements import note_told
from db.proxies.proxy_reports import note_drain_looks, routes_to_look_at, told_of_drains
from tasks.replicas.host_replicas import HostReplicas
from tests.support.rows.deployments import ask, read, write
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.workers.replicas import SERVICE, make_route, route, until, until_started

EDGE = SeenProxy("edge", "envoy", 60, stats_address="127.0.0.1:9902")


@pytest.fixture
def draining(engine: Engine, host_replicas: HostReplicas, probe_once: Callable[[], bool], drain_max: float) -> UUID:
    """A replica that every live proxy has let go of; no fixed time is waited for it."""
    route_id = make_route(engine, {**SERVICE, "drain_seconds": 0, "drain_max_seconds": drain_max})
    until_started(host_replicas)
    until(engine, route_id, "healthy", probe_once)
    in_transaction(engine, partial(note_publisher, publisher_id="server"))
    in_transaction(engine, partial(note_proxies, proxies=[EDGE]))
    ask(engine, "destroy", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    ((seen,),) = [row.values() for row in read(engine, "SELECT pg_current_snapshot()::text AS seen")]
    in_transaction(engine, partial(note_acks, acks=[Ack("edge", "a", seen)]))
    return route_id


def tell(engine: Engine, route_id: UUID, answers: int) -> bool:
    """All proxies tell that so many are under way, some time after they told last."""
    write(engine, "UPDATE drain_looks SET looked_at = looked_at - interval '1 second'")
    return in_transaction(engine, partial(note_drain_looks, under_way={route_id: answers}))


def is_asked(engine: Engine, here: HostReplicas, route_id: UUID) -> bool:
    here.stop()
    return route(engine, route_id)["stop_requested_at"] is not None


@pytest.mark.parametrize("drain_max", [3600.0])
def test_it_is_asked_to_end_after_two_looks_without_an_answer_under_way(
    engine: Engine, host_replicas: HostReplicas, draining: UUID
) -> None:
    assert in_transaction(engine, lambda connection: told_of_drains(connection, ())).do_proxies_tell
    assert not is_asked(engine, host_replicas, draining), "the first look is yet to come"
    assert in_transaction(engine, routes_to_look_at) == [draining]
    for answers in (3, 0, 1, 0):
        assert not tell(engine, draining, answers)
        assert not is_asked(engine, host_replicas, draining)
    assert not in_transaction(engine, partial(note_drain_looks, under_way={draining: 0})), "a look of another server"
    assert not is_asked(engine, host_replicas, draining)
    assert tell(engine, draining, 0)
    assert is_asked(engine, host_replicas, draining)
    assert in_transaction(engine, routes_to_look_at) == []
    eventually(lambda: not host_replicas.stop())
    assert read(engine, "SELECT FROM deployment_history WHERE result = 'cut'") == []


@pytest.mark.parametrize("drain_max", [0.5])
def test_what_is_cut_after_the_longest_time_is_counted_and_named(
    engine: Engine, host_replicas: HostReplicas, draining: UUID
) -> None:
    host_replicas.stop()
    tell(engine, draining, 3)
    eventually(lambda: is_asked(engine, host_replicas, draining))
    (said,) = read(engine, "SELECT message FROM deployment_history WHERE result = 'cut'")
    assert said["message"] == "3 answers were still under way after drain_max_seconds, 0.5 s: cut"


@pytest.mark.parametrize("drain_max", [3600.0])
def test_where_one_proxy_does_not_tell_the_fixed_time_counts(
    engine: Engine, host_replicas: HostReplicas, draining: UUID
) -> None:
    in_transaction(engine, partial(note_proxies, proxies=[SeenProxy("mute", "traefik", 60)]))
    write(engine, "UPDATE proxies SET acked_snapshot = (SELECT acked_snapshot FROM proxies WHERE node_id = 'edge')")
    assert not in_transaction(engine, lambda connection: told_of_drains(connection, ())).do_proxies_tell
    assert is_asked(engine, host_replicas, draining)


@pytest.mark.parametrize("drain_max", [60.0])
def test_where_each_proxy_has_told_before_the_first_look_is_waited_for_though_their_server_is_away(
    engine: Engine, host_replicas: HostReplicas, draining: UUID
) -> None:
    in_transaction(engine, partial(note_told, node_ids=["edge"]))
    assert in_transaction(engine, lambda connection: told_of_drains(connection, ())).have_proxies_told
    write(engine, "UPDATE routes SET out_of_traffic_at = clock_timestamp() - interval '6 seconds'")
    assert not is_asked(engine, host_replicas, draining), "answers may be under way"
    moved = replace(EDGE, stats_address="127.0.0.1:9903")
    in_transaction(engine, partial(note_proxies, proxies=[moved]))
    assert is_asked(engine, host_replicas, draining), "it is not known to tell there"


@pytest.mark.parametrize("drain_max", [3600.0])
def test_one_that_was_drained_while_it_was_being_started_is_known_to_no_proxy_and_so_not_waited_for(
    engine: Engine, host_replicas: HostReplicas, draining: UUID
) -> None:
    in_transaction(engine, partial(note_told, node_ids=["edge"]))
    write(engine, "UPDATE routes SET address = NULL, replica_handle = NULL, started_at = NULL")
    assert is_asked(engine, host_replicas, draining)
