"""The wires of revisions, by which their replicas are spoken to, where they differ within a deployment.

While they do not differ, the deployment has the wire, and no revision has its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from domain.traffic.wire import Wire, known_wire, stored_wire

_KEEP = """
    UPDATE revisions SET wire = CASE WHEN id = ANY(%(ids)s) THEN %(wire)s ELSE %(others)s END
     WHERE deployment_id = %(deployment_id)s
       AND CASE WHEN id = ANY(%(ids)s) THEN wire IS DISTINCT FROM %(wire)s ELSE wire IS NULL END
"""

_KEEP_OWN = "UPDATE revisions SET wire = %s WHERE id = ANY(%s) AND wire IS NOT NULL"

_SPOKEN = """
    SELECT v.id FROM revisions v JOIN deployments d ON v.id IN (d.current_revision_id, d.deploying_revision_id)
     WHERE d.id = %s AND (v.wire IS NULL OR v.wire = %s OR v.id = d.current_revision_id)
"""

_OF_DEPLOYMENT = """
    UPDATE deployments
       SET protocol = %(protocol)s,
           rules = CASE WHEN %(tls)s::jsonb IS NULL THEN rules - 'upstream_tls'
                        ELSE rules || jsonb_build_object('upstream_tls', %(tls)s::jsonb) END
     WHERE id = %(id)s
"""


def keep_wire(connection: Connection, deployment_id: UUID, revisions: Sequence[UUID], wire: Wire, before: Wire) -> None:
    """Speak to these revisions by this wire from now on; the others keep the deployment's wire from before."""
    if wire == before:
        connection.execute(_KEEP_OWN, (Jsonb(stored_wire(wire)), list(revisions)))
        return
    values = {"wire": Jsonb(stored_wire(wire)), "others": Jsonb(stored_wire(before))}
    connection.execute(_KEEP, {"deployment_id": deployment_id, "ids": list(revisions), **values})


def spoken_alike(connection: Connection, deployment_id: UUID, wire: Wire) -> list[UUID]:
    """The revision that runs, and the one that is rolled out if it is spoken to in the same way."""
    rows = connection.execute(_SPOKEN, (deployment_id, Jsonb(stored_wire(wire)))).fetchall()
    return [revision for (revision,) in rows]


def own_wire(connection: Connection, revision_id: UUID) -> Wire | None:
    """Read the wire of a revision; None where it has none of its own."""
    row = connection.execute("SELECT wire FROM revisions WHERE id = %s", (revision_id,)).fetchone()
    return None if row is None else wire_of(row[0])


def wire_of(wire: Mapping[str, Any] | None) -> Wire | None:
    """The wire of a revision's row; None where it has none of its own."""
    return None if wire is None else known_wire(wire)


def speak_so(connection: Connection, deployment_id: UUID, wire: Wire) -> None:
    """Let the deployment say so too: a revision with this wire runs from now on."""
    value = stored_wire(wire)
    tls = value.get("upstream_tls")
    values = {"id": deployment_id, "protocol": value["protocol"], "tls": None if tls is None else Jsonb(tls)}
    connection.execute(_OF_DEPLOYMENT, values)
