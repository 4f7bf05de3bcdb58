"""Which certificates are wanted, and how those that there are look to people."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from domain.traffic.tls import CertificateKind

# what is not wanted any more is shown until all that is wanted is there
# what an authority has given is not ordered again before its time
_WANT = """
    INSERT INTO certificates AS c (deployment_id, kind, name)
    SELECT %(deployment_id)s, u.kind, u.name FROM unnest(%(kinds)s::text[], %(names)s::text[]) u(kind, name)
        ON CONFLICT (deployment_id, kind, name) DO UPDATE
       SET is_wanted = true,
           due_at = CASE WHEN c.chain IS NULL OR c.kind <> 'acme' THEN clock_timestamp() ELSE c.due_at END
"""

_UNWANT = """
    UPDATE certificates c SET is_wanted = false
     WHERE c.deployment_id = %(deployment_id)s
       AND (c.kind, c.name) NOT IN (SELECT * FROM unnest(%(kinds)s::text[], %(names)s::text[]))
"""

FORGET_UNWANTED = """
    DELETE FROM certificates c
     WHERE c.deployment_id = %(deployment_id)s AND NOT c.is_wanted
       AND NOT EXISTS (SELECT FROM certificates w
                        WHERE w.deployment_id = c.deployment_id AND w.is_wanted AND w.chain IS NULL)
"""
"""What is not wanted any more goes when all that is wanted is there."""

_SHOWN = """
    SELECT kind, name, names, not_before, not_after, fault, order_url IS NOT NULL AS is_ordered, is_wanted
      FROM certificates WHERE deployment_id = %s ORDER BY kind, name
"""


_FAULTS = """
    SELECT d.name, c.name, c.fault, c.not_after
      FROM certificates c JOIN deployments d ON d.id = c.deployment_id
     WHERE c.is_wanted AND c.fault IS NOT NULL AND d.lifecycle <> 'destroyed'
     ORDER BY d.name, c.kind, c.name
"""


@dataclass(frozen=True, slots=True)
class CertificateView:
    """Shows a certificate to people. `is_ordered`: an authority was asked, and has not given it yet."""

    kind: str
    name: str
    names: list[str]
    not_before: datetime | None
    not_after: datetime | None
    fault: str | None
    is_ordered: bool
    is_wanted: bool

    @property
    def is_of_authorities(self) -> bool:
        """Whether others' certificates are checked by it, and it is shown to nobody."""
        return self.kind in (CertificateKind.CALLERS, CertificateKind.REPLICAS)

    @property
    def title(self) -> str:
        """Call it by what it is for: the certificate of web.example.com."""
        if self.is_of_authorities:
            return f"authorities of {self.kind}"
        return f"certificate of {self.name or ', '.join(self.names) or 'its own'}"


def want(connection: Connection[Any], deployment_id: UUID, wanted: Iterable[tuple[CertificateKind, str]]) -> None:
    """Note which certificates a deployment needs from now on."""
    rows = sorted((kind.value, name) for kind, name in wanted)
    own = {
        "deployment_id": deployment_id,
        "kinds": [kind for kind, _ in rows],
        "names": [name for _, name in rows],
    }
    connection.execute(_UNWANT, own)
    connection.execute(_WANT, own)
    connection.execute(FORGET_UNWANTED, own)


def certificates_of(connection: Connection[Any], deployment_id: UUID) -> list[CertificateView]:
    """The certificates of a deployment, for people."""
    return connection.cursor(row_factory=class_row(CertificateView)).execute(_SHOWN, (deployment_id,)).fetchall()


def certificate_faults(connection: Connection[Any]) -> list[tuple[str, str, str, datetime | None]]:
    """Return of each certificate that could not be had last: its deployment, its host name, why, and until when it is.

    The host name is empty for what was given; the time is None where none is shown.
    """
    return connection.execute(_FAULTS).fetchall()
