"""When a proxy counts as silent: beside a server it could talk to, and by a clock that may be set back."""

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.proxies.acks import Ack, begin_publishing, list_proxies, note_acks, note_publisher
from tests.support.rows.acknowledged import drain, publish, release, see, silent_for
from tests.support.rows.deployments import Made, make_deployment, read, write


@pytest.fixture
def web(engine: Engine) -> Made:
    return make_deployment(engine, "■■■", n=1)


def test_a_proxy_that_is_silent_while_a_server_is_there_counts_no_more(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "a")
    silent_for(engine, "a", 11)
    drain(engine, web.routes[0])
    assert [proxy.is_live for proxy in in_transaction(engine, list_proxies)] == [False]
    assert release(engine) == {web.id}


def test_a_proxy_is_not_silent_while_no_server_is_there_to_be_polled(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "a")
    silent_for(engine, "a", 3605)
    write(engine, "UPDATE publishers SET seen_at = clock_timestamp() - interval '1 hour'")
    drain(engine, web.routes[0])
    assert release(engine) == frozenset()
    publish(engine)  # the server is back: the proxy gets its ten seconds from now on
    assert [proxy.is_live for proxy in in_transaction(engine, list_proxies)] == [True]
    assert release(engine) == frozenset()
    silent_for(engine, "a", 11)
    assert release(engine) == {web.id}


def test_a_proxy_that_was_silent_already_is_not_waited_for_again(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "a")
    silent_for(engine, "a", 60)
    publish(engine)
    drain(engine, web.routes[0])
    assert release(engine) == {web.id}


def test_a_second_server_keeps_the_count_while_one_is_away(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "a")
    write(engine, "UPDATE publishers SET seen_at = clock_timestamp() - interval '1 hour'")
    in_transaction(engine, lambda connection: note_publisher(connection, "two"))
    silent_for(engine, "a", 11)
    drain(engine, web.routes[0])
    assert release(engine) == {web.id}


def test_a_server_that_wrote_before_the_clock_went_back_silences_no_proxy(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "a")
    write(engine, "UPDATE publishers SET seen_at = clock_timestamp() + interval '1 hour'")
    drain(engine, web.routes[0])
    assert [proxy.is_live for proxy in in_transaction(engine, list_proxies)] == [True]
    assert release(engine) == frozenset()
    in_transaction(engine, lambda connection: note_publisher(connection, "two"))
    assert release(engine) == frozenset()


def test_a_proxy_that_was_heard_of_before_the_clock_went_back_is_not_live_for_longer(engine: Engine, web: Made) -> None:
    publish(engine)
    see(engine, "gone")
    silent_for(engine, "gone", -3600)
    drain(engine, web.routes[0])
    in_transaction(engine, lambda connection: note_publisher(connection, "one"))
    (ahead,) = read(engine, "SELECT count(*) AS n FROM proxies WHERE last_seen_at > clock_timestamp()")
    assert ahead["n"] == 0, "it has its usual time from now on, and not an hour more"
    silent_for(engine, "gone", 11)
    assert release(engine) == {web.id}


def test_a_server_forgets_who_was_silent_for_a_day_while_it_is_there(engine: Engine) -> None:
    publish(engine)
    see(engine, "a", "b")
    silent_for(engine, "a", 90_000)
    in_transaction(engine, lambda connection: note_publisher(connection, "one"))
    assert [proxy.node_id for proxy in in_transaction(engine, list_proxies)] == ["b"]


def test_who_has_not_been_heard_of_for_a_day_is_forgotten(engine: Engine) -> None:
    publish(engine)
    see(engine, "a", "b")
    silent_for(engine, "a", 90_000)
    write(engine, "UPDATE publishers SET seen_at = clock_timestamp() - interval '2 days'")
    silent_for(engine, "b", 172_805)
    in_transaction(engine, lambda connection: begin_publishing(connection, "two"))
    assert [row["id"] for row in read(engine, "SELECT id FROM publishers")] == ["two"]
    # both were live when the last server ended, however long that is ago
    assert [proxy.node_id for proxy in in_transaction(engine, list_proxies)] == ["a", "b"]
    silent_for(engine, "a", 90_000)
    in_transaction(engine, lambda connection: begin_publishing(connection, "three"))
    assert [proxy.node_id for proxy in in_transaction(engine, list_proxies)] == ["b"]


def test_what_was_acknowledged_on_a_server_that_had_counted_further_is_waited_for_again(
    engine: Engine, web: Made
) -> None:
    """A dump of it was restored here, or this is its standby: its snapshots lie ahead of every drain to come."""
    publish(engine)
    see(engine, "a")
    write(engine, "UPDATE proxies SET acked_snapshot = '9000000000:9000000000:', acked_at = now()")
    drain(engine, web.routes[0])
    assert release(engine) == frozenset()
    in_transaction(engine, lambda connection: note_publisher(connection, "one"))
    assert read(engine, "SELECT acked_at FROM proxies") == [{"acked_at": None}]


def test_what_is_acknowledged_of_a_server_that_had_counted_further_is_not_noted(engine: Engine, web: Made) -> None:
    """A table that was read before its standby was promoted, and is acknowledged after that."""
    publish(engine)
    see(engine, "a")
    drain(engine, web.routes[0])
    of_then = Ack("a", "v1", "9000000000:9000000000:")
    in_transaction(engine, lambda connection: note_acks(connection, [of_then]))
    assert release(engine) == frozenset()
    assert read(engine, "SELECT acked_version FROM proxies WHERE acked_version = 'v1'") == []
