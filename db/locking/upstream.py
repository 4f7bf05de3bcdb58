"""How replicas are asked by TLS, as every query that finds some reads it of their deployment."""

from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from domain.traffic.tls import ReplicaTls, known_upstream, replica_tls

AUTHORITIES: LiteralString = """
    CASE WHEN d.rules ? 'upstream_tls' THEN
    (SELECT chain FROM certificates c WHERE c.deployment_id = d.id AND c.kind = 'replicas') END AS ca
"""
"""The authorities that certify the replicas of a deployment `d`, as they were read; null while nobody has."""
UPSTREAM: LiteralString = f"d.rules->'upstream_tls' AS upstream, {AUTHORITIES}"
"""What is expected of its replicas, and these."""


def tls_of_replicas(connection: Connection[Any], deployment_id: UUID) -> ReplicaTls | None:
    """Read how the replicas of a deployment are asked by TLS; None: in clear text."""
    query = f"SELECT d.name, {UPSTREAM} FROM deployments d WHERE d.id = %s"
    ((name, upstream, ca),) = connection.execute(query, (deployment_id,)).fetchall()
    return replica_tls(name, known_upstream(upstream), ca)
