"""Which certificates are wanted, and how those that there are look to people."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from domain.traffic.shown import is_for
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
       AND NOT (c.kind = 'replicas'
                AND EXISTS (SELECT FROM routes r JOIN revisions v ON v.id = r.revision_id
                             WHERE r.deployment_id = c.deployment_id AND r.stopped_at IS NULL
                               AND v.wire #>> '{upstream_tls,ca}' = c.name))
"""
"""What is not wanted any more goes when all that is wanted is there, and no replica runs that is believed by it."""

_VIEW = """
    c.kind, c.name, c.names, c.not_before, c.not_after, c.fault, c.order_url IS NOT NULL AS is_ordered, c.is_wanted,
    c.doubt, c.refused
"""
_SHOWN = f"SELECT {_VIEW} FROM certificates c WHERE deployment_id = %s ORDER BY kind, name"
_OF_ALL = f"""
    SELECT d.name, ARRAY(SELECT value FROM entrances n WHERE n.deployment_id = d.id AND n.kind = 'host' ORDER BY value),
           {_VIEW}
      FROM certificates c JOIN deployments d ON d.id = c.deployment_id
     WHERE d.lifecycle <> 'destroyed' ORDER BY d.name, c.kind, c.name
"""


@dataclass(frozen=True, slots=True)
class CertificateView:
    """Shows a certificate to people. `is_ordered`: an authority was asked, and has not given it yet.

    `doubt`: why some callers will not believe it. `refused`: why a proxy did not take it over. `fault`: why there is
    none, or none in its place.
    """

    kind: str
    name: str
    names: list[str]
    not_before: datetime | None
    not_after: datetime | None
    fault: str | None
    is_ordered: bool
    is_wanted: bool
    doubt: str | None = None
    refused: str | None = None

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

    @property
    def troubles(self) -> Iterator[str]:
        """Say, with its title, what a person should do something about."""
        if self.fault:
            until = f"not renewed, and ends at {self.not_after:%Y-%m-%d %H:%M} UTC: " if self.not_after else ""
            yield f"{self.title}: {until}{self.fault}"
        if self.refused:
            yield f"{self.title}: a proxy does not show it: {self.refused}"
        if self.doubt:
            yield f"{self.title}: {self.doubt}"


def hosts_without(certificates: Sequence[CertificateView], hosts: Sequence[str]) -> Iterator[str]:
    """Say of each host name that no certificate is for it; of those by authorities each has its own to say so."""
    names = [name for each in certificates if not each.is_of_authorities for name in each.names]
    is_given = any(each.is_wanted and each.kind == CertificateKind.GIVEN for each in certificates)
    for host in hosts if is_given else ():
        if not is_for(names, host):
            yield f"{host} has no certificate, so nobody reaches it by https://"


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


def certificate_troubles(connection: Connection[Any]) -> list[str]:
    """Say, with the deployment's name, what a person should do something about."""
    rows = groupby(connection.execute(_OF_ALL).fetchall(), itemgetter(0, 1))
    of_each = (
        (name, troubles_of([CertificateView(*view) for _, _, *view in its], hosts)) for (name, hosts), its in rows
    )
    return [f"{name}: {trouble}" for name, troubles in of_each for trouble in troubles]


def troubles_of(certificates: Sequence[CertificateView], hosts: Sequence[str]) -> Iterator[str]:
    """Say what is wrong with those that are wanted, and of which host names there is none."""
    for certificate in certificates:
        if certificate.is_wanted:
            yield from certificate.troubles
    yield from hosts_without(certificates, hosts)
