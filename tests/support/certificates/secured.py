"""Deployments at the edge that are reached by TLS, with certificates as workers note them."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

from db.certificates import NewCertificate, TakenCertificate, note_certificate
from db.connection.transactions import in_transaction
from domain.traffic.tls import CertificateKind, TlsSettings
from tests.support.certificates.authorities import Certified
from tests.support.proxies.edge import Edge
from tests.support.rows.deployments import Made, write
from tests.support.rows.entrances import set_tls
from traffic.certificates.x509 import KeySeal

KEY = "k" * 32
GIVEN: dict[str, Any] = {"certificate": "file:/c.pem", "key": "file:/c.key"}


def secure(edge: Edge, made: Made, host: str, **settings: Any) -> None:
    """Have it reached by this host name, by TLS, as `set_traffic` does it."""
    query = "INSERT INTO entrances (kind, value, deployment_id) VALUES ('host', %s, %s)"
    write(edge.routes.engine, query, host, made.id)
    set_tls(edge.routes.engine, made.id, TlsSettings(**settings), (host,))
    drop = "DELETE FROM entrances WHERE deployment_id = %s AND value <> %s"
    write(edge.routes.engine, drop, made.id, host)


def row(made: Made, kind: CertificateKind, name: str = "") -> TakenCertificate:
    """As a worker has taken it."""
    return TakenCertificate(
        made.id,
        made.name,
        kind,
        name,
        TlsSettings(),
        0,
        None,
        None,
        None,
        is_read=False,
        order_url=None,
        order_key=None,
    )


def note(edge: Edge, taken: TakenCertificate, chain: str, key: str | None, *names: str) -> None:
    new = NewCertificate(chain, key, names, None, None)
    in_transaction(edge.routes.engine, partial(note_certificate, certificate=taken, new=new, due_at=datetime.now(UTC)))
    edge.routes.tell()


def show(edge: Edge, made: Made, certified: Certified, *names: str) -> None:
    """Have proxies show this, as a worker does that has read it."""
    note(edge, row(made, CertificateKind.GIVEN), certified.chain, KeySeal(KEY).seal(certified.key), *names)
