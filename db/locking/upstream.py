"""How replicas are spoken to, as every query that finds some reads it of their revision."""

from collections.abc import Mapping
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from domain.traffic.tls import ReplicaTls
from domain.traffic.wire import known_wire, replica_wire

OF_DEPLOYMENT: LiteralString = """
    jsonb_strip_nulls(jsonb_build_object('protocol', d.protocol, 'upstream_tls', d.rules -> 'upstream_tls'))
"""
"""The wire of a deployment `d`, which those of its revisions have that have none of their own."""
WIRE: LiteralString = f"coalesce(v.wire, {OF_DEPLOYMENT})"
"""The wire of a revision `v`."""
AUTHORITIES: LiteralString = f"""
    (SELECT c.chain FROM certificates c
      WHERE c.deployment_id = d.id AND c.kind = 'replicas' AND c.name = {WIRE} #>> '{{upstream_tls,ca}}') AS ca
"""
"""The authorities that certify its replicas, as they were read; null while nobody has."""
SPOKEN: LiteralString = f"{WIRE} AS wire, {AUTHORITIES}"
"""Both."""

_OF_REVISIONS = f"""
    SELECT v.name, d.name, {SPOKEN} FROM revisions v JOIN deployments d ON d.id = v.deployment_id
     WHERE d.id = %s AND v.name = ANY(%s)
"""


def tls_of_revisions(
    connection: Connection[Any], deployment_id: UUID, names: list[str]
) -> Mapping[str, ReplicaTls | None]:
    """Read how the replicas of these revisions are asked by TLS; None: in clear text."""
    rows = connection.execute(_OF_REVISIONS, (deployment_id, names)).fetchall()
    return {revision: replica_wire(deployment, known_wire(wire), ca).tls for revision, deployment, wire, ca in rows}
