"""Certificates whose turn it is: who treats one, and what came of it. Their keys stand here sealed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.certificates.wanted import FORGET_UNWANTED
from domain.traffic.tls import CertificateKind, TlsSettings, known_tls

# the deployment comes first of which none was looked at for longest: one of a hundred hosts holds up no other
_TAKE = """
    UPDATE certificates c SET leased_until = clock_timestamp() + %(lease)s, taken_at = clock_timestamp()
      FROM deployments d
     WHERE d.id = c.deployment_id
       AND (c.deployment_id, c.kind, c.name) = (
            SELECT n.deployment_id, n.kind, n.name
              FROM certificates n JOIN deployments o ON o.id = n.deployment_id
             WHERE n.is_wanted AND n.due_at <= clock_timestamp() AND o.lifecycle <> 'destroyed'
               AND (n.leased_until IS NULL OR n.leased_until < clock_timestamp())
             ORDER BY (SELECT max(t.taken_at) FROM certificates t WHERE t.deployment_id = n.deployment_id) NULLS FIRST,
                      n.due_at
             LIMIT 1 FOR UPDATE OF n SKIP LOCKED)
    RETURNING c.deployment_id, d.name AS deployment, c.kind, c.name, d.rules, c.failures, c.chain, c.not_before,
              c.fault, c.read_at > clock_timestamp() - interval '2 minutes' AS is_read, c.order_url, c.order_key,
              c.names, c.not_after, c.doubt, c.read_by,
              ARRAY(SELECT value FROM entrances e WHERE e.deployment_id = d.id AND e.kind = 'host' ORDER BY value)
"""

OWN = "deployment_id = %(deployment_id)s AND kind = %(kind)s AND name = %(name)s"
"""The row of a certificate that was taken."""

_LEASE = f"UPDATE certificates SET leased_until = clock_timestamp() + %(lease)s WHERE {OWN}"

_NOTE = f"""
    UPDATE certificates
       SET chain = %(chain)s, sealed_key = %(sealed_key)s, names = %(names)s, not_before = %(not_before)s,
           not_after = %(not_after)s, doubt = %(doubt)s, refused = NULL, fault = NULL, failures = 0,
           read_at = clock_timestamp(), read_by = %(read_by)s, due_at = %(due_at)s,
           leased_until = NULL, order_url = NULL, order_key = NULL, token = NULL, answer = NULL
     WHERE {OWN}
"""

_NOTE_SAME = f"""
    UPDATE certificates SET fault = NULL, failures = 0, read_at = clock_timestamp(), read_by = %(read_by)s,
                            due_at = %(due_at)s, leased_until = NULL
     WHERE {OWN}
"""

_LEAVE = f"UPDATE certificates SET due_at = clock_timestamp() + %(pause)s, leased_until = NULL WHERE {OWN}"

_NOTE_FAULT = f"""
    UPDATE certificates
       SET fault = %(fault)s, failures = failures + 1, due_at = clock_timestamp() + %(pause)s, leased_until = NULL,
           order_url = CASE WHEN %(keeps_order)s THEN order_url END,
           order_key = CASE WHEN %(keeps_order)s THEN order_key END,
           token = CASE WHEN %(keeps_order)s THEN token END, answer = CASE WHEN %(keeps_order)s THEN answer END
     WHERE {OWN}
"""


@dataclass(frozen=True, slots=True)
class TakenCertificate:
    """A certificate whose turn it is, held for as long as the lease lasts.

    `is_read`: a host, `read_by`, has read it a moment ago. `order_url`, `order_key`: of an order under way, the key
    sealed. `names`, `not_after`, `doubt`: of the one that is shown. `hosts`: the deployment's host names.
    """

    deployment_id: UUID
    deployment: str
    kind: CertificateKind
    name: str
    settings: TlsSettings
    failures: int
    chain: str | None
    not_before: datetime | None
    fault: str | None
    is_read: bool | None
    order_url: str | None
    order_key: str | None = field(repr=False)
    names: Sequence[str] = ()
    not_after: datetime | None = None
    doubt: str | None = None
    read_by: str | None = None
    hosts: Sequence[str] = ()

    @property
    def own(self) -> dict[str, Any]:
        """Return what its row is found by."""
        return {"deployment_id": self.deployment_id, "kind": self.kind.value, "name": self.name}


@dataclass(frozen=True, slots=True)
class NewCertificate:
    """A certificate that was read or given, its key sealed.

    `doubt`: why some callers will not believe it. `read_by`: the host that found it; None: an authority gave it.
    """

    chain: str
    sealed_key: str | None = field(repr=False)
    names: tuple[str, ...]
    not_before: datetime | None
    not_after: datetime | None
    doubt: str | None = None
    read_by: str | None = None


def take_due(connection: Connection[Any], lease: timedelta) -> TakenCertificate | None:
    """Take a certificate whose turn it is, so that nobody else looks at it until the lease is over."""
    row = connection.execute(_TAKE, {"lease": lease}).fetchone()
    if row is None:
        return None
    deployment_id, deployment, kind, name, rules, *others = row
    settings = known_tls(rules.get("tls")) or TlsSettings()
    return TakenCertificate(deployment_id, deployment, CertificateKind(kind), name, settings, *others)


def hold(connection: Connection[Any], taken: TakenCertificate, lease: timedelta) -> None:
    """Hold it for that long from now on."""
    connection.execute(_LEASE, {**taken.own, "lease": lease})


def note_certificate(
    connection: Connection[Any], taken: TakenCertificate, new: NewCertificate, due_at: datetime
) -> None:
    """Show this one from now on; it is looked at again at `due_at`."""
    found = {
        "chain": new.chain,
        "sealed_key": new.sealed_key,
        "names": list(new.names),
        "not_before": new.not_before,
        "not_after": new.not_after,
        "doubt": new.doubt,
        "read_by": new.read_by,
        "due_at": due_at,
    }
    connection.execute(_NOTE, {**taken.own, **found})
    connection.execute(FORGET_UNWANTED, taken.own)


def note_same(connection: Connection[Any], taken: TakenCertificate, read_by: str, due_at: datetime) -> None:
    """Note that a host has found it as it was."""
    connection.execute(_NOTE_SAME, {**taken.own, "read_by": read_by, "due_at": due_at})


def leave(connection: Connection[Any], taken: TakenCertificate, pause: timedelta) -> None:
    """Leave it to others for that long, as it is."""
    connection.execute(_LEAVE, {**taken.own, "pause": pause})


def note_fault(
    connection: Connection[Any], taken: TakenCertificate, fault: str, pause: timedelta, *, keeps_order: bool = False
) -> None:
    """Note why it could not be had; what is shown goes on being shown. It is tried again after the pause."""
    connection.execute(_NOTE_FAULT, {**taken.own, "fault": fault, "pause": pause, "keeps_order": keeps_order})
