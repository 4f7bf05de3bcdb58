"""The certificates and challenges that proxies are told of, as Postgres keeps them: their keys sealed."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from psycopg import Cursor

from domain.traffic.shown import Challenge, Secured, ShownCertificate
from domain.traffic.tls import TLS_ALPN, CertificateKind

# those that are wanted come first: what is shown for the sake of a name that has none yet comes after them
_CERTIFICATES = """
    SELECT c.deployment_id, d.name, c.kind, c.name, c.names, c.chain, c.sealed_key, c.token, c.answer,
           c.order_key
      FROM certificates c JOIN deployments d ON d.id = c.deployment_id
     WHERE c.deployment_id = ANY(%s) AND c.kind <> 'replicas'
     ORDER BY c.deployment_id, c.is_wanted DESC, c.kind, c.name
"""


def secured_of(cursor: Cursor[Any], deployment_ids: Sequence[UUID]) -> dict[UUID, Secured]:
    """What these deployments, which are reached by TLS, have for it."""
    if not deployment_ids:
        return {}
    rows = cursor.execute(_CERTIFICATES, (list(deployment_ids),)).fetchall()
    found = {key: _secured(list(of)) for key, of in groupby(rows, itemgetter(0))}
    return {key: found.get(key, Secured()) for key in deployment_ids}


def _secured(rows: Sequence[tuple[Any, ...]]) -> Secured:
    callers_ca, certificates, challenges, proofs = "", [], [], []
    for _, deployment, kind, name, names, chain, sealed_key, token, answer, order_key in rows:
        if token == TLS_ALPN and order_key is not None:
            proofs.append(ShownCertificate(f"{deployment}/proof/{name}", (name,), answer, order_key))
        elif token is not None:
            challenges.append(Challenge(token, answer))
        if chain is not None and kind == CertificateKind.CALLERS:
            callers_ca = chain
        elif chain is not None:
            certificates.append(ShownCertificate(f"{deployment}/{kind}/{name}", tuple(names), chain, sealed_key))
    return Secured(callers_ca, tuple(certificates), tuple(challenges), tuple(proofs))
