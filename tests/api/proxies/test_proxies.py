"""Which proxies count, and which drains all of them know."""

from typing import LiteralString

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction, transaction
from db.proxies.acks import list_proxies, release_drained
from tests.support.proxies.edge import DRAIN
from tests.support.rows.acknowledged import ack, drain, publish, release, see, seen_now
from tests.support.rows.deployments import SPEC, Made, make_deployment, read, write

PARK = {"sleep": {"path": "/sleep"}, "wake": {"path": "/wake_up"}}
PARKED: LiteralString = """
    UPDATE routes SET traffic_status = 'inactive', parked_until = now() + interval '1 h', parked_at = now(),
                      park_xid = pg_current_xact_id() WHERE id = ANY(%s)
"""


@pytest.fixture
def web(engine: Engine) -> Made:
    return make_deployment(engine, "■■■", n=1)


def test_a_drain_waits_for_every_live_proxy(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "a", "b")
    drain(engine, web.routes[0])
    assert release(engine) == frozenset()
    ack(engine, "a", seen_now(engine))
    assert release(engine) == frozenset()
    ack(engine, "b", seen_now(engine))
    assert release(engine) == {web.id}
    assert release(engine) == frozenset()


def test_a_release_is_a_change_of_the_deployment_and_says_how_long_it_took(engine: Engine, web: Made) -> None:
    drain(engine, web.routes[0])
    (before,) = read(engine, "SELECT version FROM deployments")
    (released,) = in_transaction(engine, release_drained)
    (after,) = read(engine, "SELECT version FROM deployments")
    assert after["version"] == before["version"] + 1
    assert 0 < released.seconds < 10
    (route,) = read(engine, "SELECT * FROM routes WHERE out_of_traffic_at IS NOT NULL")
    assert route["id"] == web.routes[0]


def test_a_drain_that_was_committed_after_the_snapshot_was_taken_is_not_known(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "a")
    with transaction(engine) as open_transaction:
        assert open_transaction.execute(DRAIN, ([web.routes[0]],)).rowcount == 1
        during = seen_now(engine)  # taken while the drain has its number but is not committed
    ack(engine, "a", during)
    assert release(engine) == frozenset()
    ack(engine, "a", seen_now(engine))
    assert release(engine) == {web.id}


def test_an_older_drain_is_known_while_a_newer_one_is_not(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "a")
    drain(engine, web.routes[0])
    ack(engine, "a", seen_now(engine))
    drain(engine, web.routes[1])
    assert release(engine) == {web.id}
    gone = read(engine, "SELECT id FROM routes WHERE out_of_traffic_at IS NOT NULL")
    assert [row["id"] for row in gone] == [web.routes[0]]


@pytest.mark.parametrize(("park", "released"), [({"park": PARK}, True), ({}, False)])
def test_a_parked_replica_is_let_go_as_one_that_is_drained_if_it_may_sleep(
    engine: Engine, park: dict[str, object], *, released: bool
) -> None:
    made = make_deployment(engine, "■■", n=1, spec={**SPEC, **park})
    publish(engine)
    see(engine, "a")
    write(engine, PARKED, [made.routes[0]])
    assert release(engine) == frozenset()
    ack(engine, "a", seen_now(engine))
    assert release(engine) == (frozenset({made.id}) if released else frozenset())
    assert release(engine) == frozenset()


def test_without_a_live_proxy_there_is_nothing_to_wait_for(engine: Engine, web: Made) -> None:
    drain(engine, web.routes[0])
    assert release(engine) == {web.id}


def test_the_list_says_what_each_proxy_knows_and_how_many_drains_wait_for_it(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "a", "b")
    drain(engine, web.routes[0])
    ack(engine, "a", seen_now(engine))
    drain(engine, web.routes[1])
    first, second = in_transaction(engine, list_proxies)
    assert (first.node_id, first.kind, first.is_live, first.acked_version) == ("a", "envoy", True, "v")
    assert (first.drains_waiting, second.drains_waiting) == (1, 2)
    assert first.acked_seconds_ago is not None
    assert 0 <= first.acked_seconds_ago < 10
    assert (second.acked_version, second.acked_seconds_ago) == (None, None)


def test_a_route_that_left_without_a_mark_of_its_transaction_waits_for_nobody(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "a")
    drain(engine, web.routes[0])
    write(engine, "UPDATE routes SET drain_xid = NULL")
    assert release(engine) == {web.id}


def test_a_release_waits_for_who_holds_the_deployment(engine: Engine, web: Made) -> None:
    """It locks the deployment before its routes, as everyone does; here it gives up after lock_timeout."""

    def release_impatiently() -> None:
        with transaction(engine) as other:
            other.execute("SET LOCAL lock_timeout = '50ms'")
            release_drained(other)

    drain(engine, web.routes[0])
    with transaction(engine) as holder:
        assert holder.execute("SELECT id FROM deployments FOR NO KEY UPDATE").rowcount == 1
        with pytest.raises(Exception, match="lock timeout"):
            release_impatiently()
    assert release(engine) == {web.id}
