"""Both sides of a rollout are asked by a real Envoy in their own ways, and no request is lost where one takes over."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from psycopg.types.json import Jsonb

from db.certificates import want
from db.connection.transactions import in_transaction
from domain.traffic.release import stored_release
from domain.traffic.snapshot import RequestRules
from domain.traffic.tls import UpstreamTls, wanted_certificates
from domain.traffic.wire import Protocol, Wire, stored_wire
from tests.support.certificates.authorities import Authority, speaks_tls
from tests.support.pictures.pictures import PROVISIONING
from tests.support.pictures.policies import BLUE_GREEN, RECREATE
from tests.support.proxies.edge import Edge
from tests.support.proxies.http2_replica import http2_replica
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import Made, write
from tests.support.stack.waiting import eventually

HTTP2 = Wire(Protocol.HTTP2)
TLS = Wire(upstream_tls=UpstreamTls(ca="file:/ca.pem", server_name="inside.example.com"))
SWAPS = 6


def speak(edge: Edge, made: Made, wire: Wire, authority: Authority | None = None) -> None:
    """To v2 in this way, and to v1 in the usual one, as `set_traffic` does it with a rollout."""
    query = "UPDATE revisions SET wire = %s WHERE id = %s"
    for revision, its in ((made.v1, Wire()), (made.v2, wire)):
        write(edge.routes.engine, query, Jsonb(stored_wire(its)), revision)
    wanted = wanted_certificates(None, (), wire.upstream_tls)
    in_transaction(edge.routes.engine, partial(want, deployment_id=made.id, certificates=wanted))
    if authority is not None:
        believe = "UPDATE certificates SET chain = %s, due_at = now() + interval '1 day' WHERE deployment_id = %s"
        write(edge.routes.engine, believe, authority.pem, made.id)
    write(edge.routes.engine, "UPDATE deployments SET version = version + 1 WHERE id = %s", made.id)
    edge.routes.tell()


@contextmanager
def replica_on(wire: Wire, folder: Path) -> Iterator[tuple[str, Authority | None]]:
    """The address of one that is spoken to in this way alone."""
    if wire == HTTP2:
        with http2_replica() as address:
            yield address, None
        return
    authority = Authority.make()
    with replicas("secure") as (replica,):
        speaks_tls(replica, authority.certify("inside.example.com"), folder)
        yield replica.address, authority


def has_grown(statuses: Counter[int], beyond: int) -> bool:
    return statuses.total() > beyond


@pytest.mark.parametrize("wire", [HTTP2, TLS], ids=["http2", "tls"])
def test_no_request_is_lost_where_replicas_take_over_that_are_spoken_to_otherwise(
    envoy_edge: Edge, tmp_path: Path, wire: Wire
) -> None:
    with replicas("old") as (old,), replica_on(wire, tmp_path) as (new, authority):
        at = [old.address] * (SWAPS + 1) + [new] * SWAPS
        drawn_as = f"■{'□' * SWAPS}|{'□' * SWAPS}"
        web = envoy_edge.make(drawn_as, *at, status=PROVISIONING, policy=BLUE_GREEN)
        speak(envoy_edge, web, wire, authority)
        envoy_edge.wait_for(f"/{web.name}/")
        first, *olds = web.routes[: SWAPS + 1]
        serving = first
        with envoy_edge.asked_all_the_time(f"/{web.name}/") as statuses:
            for old_again, coming in zip(olds, web.routes[SWAPS + 1 :], strict=True):
                for then in (coming, old_again):
                    before = statuses.total()
                    envoy_edge.routes.promote([then], [serving])
                    eventually(partial(envoy_edge.routes.released, serving), what="the drain is acknowledged")
                    eventually(partial(has_grown, statuses, before + 50), what="callers ask on")
                    serving = then
        assert set(statuses) == {200}, statuses
        assert old.served["GET"] < statuses.total()


def test_each_gets_as_many_requests_as_it_has_replicas_that_are_well(envoy_edge: Edge) -> None:
    with replicas("first", "second") as (first, second), http2_replica() as new:
        web = envoy_edge.make("■■|■", first, second, new, n=2, status=PROVISIONING)
        speak(envoy_edge, web, HTTP2)
        path = f"/{web.name}/"
        eventually(lambda: "x-spoken" in envoy_edge.ask(path).headers, what="the new one is asked")
        spoken = Counter(envoy_edge.ask(path).headers.get("x-spoken") for _ in range(300))
        assert 50 < spoken["HTTP/2"] < 150, spoken
        envoy_edge.routes.ill(web.routes[2], "unhealthy")
        eventually(
            lambda: all("x-spoken" not in envoy_edge.ask(path).headers for _ in range(20)),
            what="the others get all while it is ill",
        )


def test_who_waits_while_nothing_serves_is_answered_by_one_that_is_spoken_to_otherwise(envoy_edge: Edge) -> None:
    with replicas("old") as (old,), http2_replica() as new:
        web = envoy_edge.make("■|□", old, new, status=PROVISIONING, policy=RECREATE)
        held = RequestRules(hold_seconds=20)
        bring = "UPDATE rollouts SET traffic = %s, traffic_before = %s WHERE id = %s"
        settings = [Jsonb(stored_release(((), rules), ())) for rules in (held.with_wire(HTTP2), held)]
        write(envoy_edge.routes.engine, bring, *settings, web.rollout_id)
        write(
            envoy_edge.routes.engine, """UPDATE deployments SET rules = '{"hold_seconds": 20}' WHERE id = %s""", web.id
        )
        speak(envoy_edge, web, HTTP2)
        envoy_edge.wait_for(f"/{web.name}/")
        with envoy_edge.asked_all_the_time(f"/{web.name}/") as statuses:
            eventually(lambda: statuses[200] > 20, what="the old one answers")
            envoy_edge.routes.drain(web.routes[0])
            eventually(partial(envoy_edge.routes.released, web.routes[0]), what="the drain is acknowledged")
            before = statuses[200]
            envoy_edge.routes.promote([web.routes[1]], [])
            eventually(lambda: statuses[200] > before + 50, what="the new one answers")
        assert set(statuses) == {200}, statuses
