"""Certificates that a real Envoy takes over, and refuses: workers know which before, and people are told."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from db.certificates import certificate_troubles, certificates_of
from db.connection.transactions import in_transaction
from db.proxies.traffic_reader import read_traffic
from domain.traffic.tls import TlsSettings
from tests.support.certificates.authorities import Authority, ask
from tests.support.certificates.secured import GIVEN, secure, show
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import write
from tests.support.rows.entrances import set_tls
from tests.support.stack.waiting import eventually
from traffic.certificates.x509 import CertificateFaultError, read_certificate
from traffic.explanation import AskedFor, explain
from traffic.routing_table import derive_table

KEYS: dict[str, Callable[[], Any]] = {
    "rsa1024": partial(rsa.generate_private_key, 65537, 1024),
    "rsa2048": partial(rsa.generate_private_key, 65537, 2048),
    "p256": partial(ec.generate_private_key, ec.SECP256R1()),
    "p384": partial(ec.generate_private_key, ec.SECP384R1()),
    "p521": partial(ec.generate_private_key, ec.SECP521R1()),
    "k1": partial(ec.generate_private_key, ec.SECP256K1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}


@pytest.mark.parametrize("kind", KEYS)
def test_what_workers_refuse_is_what_a_proxy_refuses_and_who_looks_is_told(
    secure_edge: Edge, authority: Authority, tls_port: int, kind: str
) -> None:
    host = f"{kind}.example.com"
    certified = authority.certify(host, key=KEYS[kind]())
    is_taken = False
    with suppress(CertificateFaultError):
        is_taken = bool(read_certificate(certified.chain, certified.key, datetime.now(UTC)))
    with replicas("mine") as (mine,):
        web = secure_edge.make("■", mine, name=f"of-{kind}")
        secure(secure_edge, web, host, **GIVEN)
        show(secure_edge, web, certified, host)

        def refused() -> str | None:
            (view,) = in_transaction(secure_edge.routes.engine, partial(certificates_of, deployment_id=web.id))
            return view.refused

        if is_taken:
            eventually(lambda: ask(f"https://{host}/", authority.context(), tls_port).status_code == 200, what=kind)
            assert refused() is None
            return
        why = eventually(refused, what="it is noted")
        trouble = f"{web.name}: certificate of {host}: a proxy does not show it: {why}"
        # an Envoy whose listener is just replaced asks for it again, and refuses it a moment later
        eventually(lambda: trouble in in_transaction(secure_edge.routes.engine, certificate_troubles), what=trouble)
        show(secure_edge, web, authority.certify(host), host)
        eventually(
            lambda: ask(f"https://{host}/", authority.context(), tls_port).status_code == 200, what="a better one"
        )
        assert refused() is None


def test_each_host_name_is_sent_on_when_it_has_a_certificate_whatever_the_others_have(
    secure_edge: Edge, authority: Authority, tls_port: int
) -> None:
    with replicas("mine") as (mine,):
        web = secure_edge.make("■", mine, name="partly")
        secure(secure_edge, web, "has.example.com", **GIVEN)
        add = "INSERT INTO entrances (kind, value, deployment_id) VALUES ('host', %s, %s)"
        write(secure_edge.routes.engine, add, "bad.example.com", web.id)
        settings = TlsSettings(**GIVEN, hsts_seconds=60)
        set_tls(secure_edge.routes.engine, web.id, settings, ("has.example.com", "bad.example.com"))
        show(secure_edge, web, authority.certify("has.example.com"), "has.example.com")
        secure_edge.wait_for("/", 308, host="has.example.com")
        assert secure_edge.ask("/", host="bad.example.com").status_code == 200
        eventually(lambda: ask("https://has.example.com/", authority.context(), tls_port).status_code == 200)
        answer = ask("https://has.example.com/", authority.context(), tls_port)
        assert answer.headers["strict-transport-security"] == "max-age=60"
        assert "strict-transport-security" not in secure_edge.ask("/", host="bad.example.com").headers

        def said(url: str) -> list[str]:
            table = derive_table(in_transaction(secure_edge.routes.engine, read_traffic))
            return [line.says for line in explain(table, AskedFor.parse(url)).said if line.about == "tls"]

        without = "bad.example.com has no certificate, so {}: 'rollway status partly' says why"
        assert said("https://bad.example.com/") == [without.format("the handshake fails")]
        assert said("http://bad.example.com/") == [without.format("nobody is sent on to https://")]
        assert said("https://has.example.com/") == []
        assert said("http://has.example.com/") == ["requests by http:// are redirected to https:// (308)"]
        told = in_transaction(secure_edge.routes.engine, certificate_troubles)
        assert "partly: bad.example.com has no certificate, so nobody reaches it by https://" in told
        show(secure_edge, web, authority.certify("*.example.com"), "*.example.com")
        secure_edge.wait_for("/", 308, host="bad.example.com")
