"""Proxies, servers for them and what they acknowledge, written as the server for proxies does it."""

from uuid import UUID

from sqlalchemy import Engine

from db.connection.transactions import in_transaction, transaction
from db.proxies.acks import Ack, SeenProxy, begin_publishing, note_acks, note_proxies, release_drained
from db.proxies.traffic_reader import read_traffic
from tests.support.proxies.edge import DRAIN
from tests.support.rows.deployments import write


def publish(engine: Engine) -> None:
    in_transaction(engine, lambda connection: begin_publishing(connection, "one"))


def see(engine: Engine, *nodes: str, silence: float = 10) -> None:
    in_transaction(
        engine, lambda connection: note_proxies(connection, [SeenProxy(node, "envoy", silence) for node in nodes])
    )


def silent_for(engine: Engine, node: str, seconds: float) -> None:
    query = "UPDATE proxies SET last_seen_at = clock_timestamp() - make_interval(secs => %s) WHERE node_id = %s"
    write(engine, query, seconds, node)


def ack(engine: Engine, node: str, seen: str) -> None:
    in_transaction(engine, lambda connection: note_acks(connection, [Ack(node, "v", seen)]))


def seen_now(engine: Engine) -> str:
    with transaction(engine) as connection:
        return read_traffic(connection).seen


def drain(engine: Engine, route: UUID) -> None:
    write(engine, DRAIN, [route])


def release(engine: Engine) -> frozenset[UUID]:
    return frozenset(route.deployment_id for route in in_transaction(engine, release_drained))
