"""Replicas that speak TLS are asked so by a real Envoy, and only if it believes them."""

from functools import partial
from pathlib import Path

from psycopg.types.json import Jsonb

from db.certificates import want
from db.connection.transactions import in_transaction
from domain.traffic.snapshot import RequestRules, stored_together
from domain.traffic.tls import UpstreamTls, wanted_certificates
from tests.support.certificates.authorities import Authority, speaks_tls
from tests.support.pictures.pictures import PROVISIONING
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import Made, write
from tests.support.stack.waiting import eventually


def expect(edge: Edge, made: Made, upstream: UpstreamTls, hold_seconds: float | None = None) -> None:
    """As `set_traffic` does it."""
    stored = stored_together(RequestRules(upstream_tls=upstream, hold_seconds=hold_seconds))
    write(edge.routes.engine, "UPDATE deployments SET rules = %s WHERE id = %s", Jsonb(stored), made.id)
    wanted = wanted_certificates(None, (), upstream)
    in_transaction(edge.routes.engine, partial(want, deployment_id=made.id, certificates=wanted))
    edge.routes.tell()


def believe(edge: Edge, made: Made, authority: Authority) -> None:
    """As a worker does that has read the file."""
    query = "UPDATE certificates SET chain = %s WHERE deployment_id = %s AND kind = 'replicas'"
    write(edge.routes.engine, query, authority.pem, made.id)
    edge.routes.tell()


def test_a_replica_is_asked_by_tls_where_its_certificate_is_believed(envoy_edge: Edge, tmp_path: Path) -> None:
    authority = Authority.make()
    with replicas("secure") as (replica,):
        names = speaks_tls(replica, authority.certify("inside.example.com"), tmp_path)
        web = envoy_edge.make("■", replica)
        path = f"/{web.name}/"
        eventually(lambda: envoy_edge.ask(path).status_code in {502, 503})
        upstream = UpstreamTls(ca="file:/ca.pem", server_name="inside.example.com")
        expect(envoy_edge, web, upstream)
        believe(envoy_edge, web, authority)
        envoy_edge.wait_for(path, 200)
        assert names == {"inside.example.com"}
        for other in (UpstreamTls(ca="file:/ca.pem", server_name="other.example.com"), UpstreamTls()):
            expect(envoy_edge, web, other)
            envoy_edge.wait_for(path, 503)
            expect(envoy_edge, web, upstream)
            believe(envoy_edge, web, authority)
            envoy_edge.wait_for(path, 200)
        believe(envoy_edge, web, Authority.make())
        envoy_edge.wait_for(path, 503)


def test_nobody_is_believed_before_the_authorities_are_read(envoy_edge: Edge, tmp_path: Path) -> None:
    authority = Authority.make()
    with replicas("early") as (replica,):
        speaks_tls(replica, authority.certify("web"), tmp_path)
        web = envoy_edge.make("■", replica)
        expect(envoy_edge, web, UpstreamTls(ca="file:/ca.pem", server_name="web"))
        envoy_edge.wait_for(f"/{web.name}/", 503)
        believe(envoy_edge, web, authority)
        envoy_edge.wait_for(f"/{web.name}/", 200)


def test_who_waits_while_nothing_serves_waits_without_tls(envoy_edge: Edge, tmp_path: Path) -> None:
    authority = Authority.make()
    with replicas("gone") as (replica,):
        speaks_tls(replica, authority.certify("web"), tmp_path)
        web = envoy_edge.make("■|", replica, status=PROVISIONING, policy={"strategy": "recreate"})
        expect(envoy_edge, web, UpstreamTls(ca="file:/ca.pem", server_name="web"), hold_seconds=1)
        believe(envoy_edge, web, authority)
        envoy_edge.wait_for(f"/{web.name}/", 200)
        envoy_edge.routes.drain(*web.routes)
        envoy_edge.wait_for(f"/{web.name}/", 503)
        answer = envoy_edge.ask(f"/{web.name}/")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
