"""Certificates as rows: which are wanted, whose turn it is to order one, orders under way, and what proxies show."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.rows import class_row

from db.locking.statuses import IS_LIVE, leased_for
from domain.traffic.tls import TLS_ALPN, CertificateKind, TlsSettings, known_tls
from domain.traffic.tls_material import Challenge, Secured, ShownCertificate, is_for

# the deployment comes first of which none was looked at for longest: one of a hundred hosts holds up no other
_TAKE = f"""
    UPDATE certificates c SET leased_until = clock_timestamp() + %(lease)s, taken_at = clock_timestamp()
      FROM deployments d
     WHERE d.id = c.deployment_id
       AND (c.deployment_id, c.kind, c.name) = (
            SELECT n.deployment_id, n.kind, n.name
              FROM certificates n JOIN deployments o ON o.id = n.deployment_id
             WHERE n.is_wanted AND n.due_at <= clock_timestamp() AND o.lifecycle <> 'destroyed'
               AND NOT n.{leased_for("interval '5 minutes'")}
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
        """The key of its row."""
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


def hold(connection: Connection[Any], certificate: TakenCertificate, lease: timedelta) -> None:
    """Hold it for that long from now on."""
    connection.execute(_LEASE, {**certificate.own, "lease": lease})


def note_certificate(
    connection: Connection[Any], certificate: TakenCertificate, new: NewCertificate, due_at: datetime
) -> None:
    """Show this one from now on; it is looked at again at `due_at`."""
    values = {
        "chain": new.chain,
        "sealed_key": new.sealed_key,
        "names": list(new.names),
        "not_before": new.not_before,
        "not_after": new.not_after,
        "doubt": new.doubt,
        "read_by": new.read_by,
        "due_at": due_at,
    }
    connection.execute(_NOTE, {**certificate.own, **values})
    connection.execute(FORGET_UNWANTED, certificate.own)


def note_same(connection: Connection[Any], certificate: TakenCertificate, read_by: str, due_at: datetime) -> None:
    """Note that a host has found it as it was."""
    connection.execute(_NOTE_SAME, {**certificate.own, "read_by": read_by, "due_at": due_at})


def leave(connection: Connection[Any], certificate: TakenCertificate, pause: timedelta) -> None:
    """Leave it to others for that long, as it is."""
    connection.execute(_LEAVE, {**certificate.own, "pause": pause})


def note_fault(
    connection: Connection[Any],
    certificate: TakenCertificate,
    fault: str,
    pause: timedelta,
    *,
    keeps_order: bool = False,
) -> None:
    """Note why it could not be had; what is shown stays shown. It is tried again after the pause."""
    connection.execute(_NOTE_FAULT, {**certificate.own, "fault": fault, "pause": pause, "keeps_order": keeps_order})


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


def want(connection: Connection[Any], deployment_id: UUID, certificates: Iterable[tuple[CertificateKind, str]]) -> None:
    """Note which certificates a deployment needs from now on."""
    rows = sorted((kind.value, name) for kind, name in certificates)
    own = {
        "deployment_id": deployment_id,
        "kinds": [kind for kind, _ in rows],
        "names": [name for _, name in rows],
    }
    connection.execute(_UNWANT, own)
    connection.execute(_WANT, own)
    connection.execute(FORGET_UNWANTED, own)


def certificates_of(connection: Connection[Any], deployment_id: UUID) -> list[CertificateView]:
    return connection.cursor(row_factory=class_row(CertificateView)).execute(_SHOWN, (deployment_id,)).fetchall()


def certificate_troubles(connection: Connection[Any]) -> list[str]:
    """Say, with the deployment's name, what a person should do something about."""
    rows = groupby(connection.execute(_OF_ALL).fetchall(), itemgetter(0, 1))
    of_each = (
        (name, troubles_of([CertificateView(*view) for _, _, *view in its], hosts)) for (name, hosts), its in rows
    )
    return [f"{name}: {trouble}" for name, troubles in of_each for trouble in troubles]


def troubles_of(certificates: Sequence[CertificateView], hosts: Sequence[str]) -> Iterator[str]:
    """The troubles of wanted certificates, and the host names without one, as sentences."""
    for certificate in certificates:
        if certificate.is_wanted:
            yield from certificate.troubles
    yield from hosts_without(certificates, hosts)


_NOTE_ORDER = f"UPDATE certificates SET order_url = %(url)s, order_key = %(order_key)s WHERE {OWN}"

_NOTE_CHALLENGE = f"""
    UPDATE certificates SET token = %(token)s, answer = %(answer)s, challenge_xid = pg_current_xact_id() WHERE {OWN}
"""

# a live proxy that holds a table from before the answer was written would answer otherwise
_PROXIES = f"""
    SELECT count(*)::int,
           count(*) FILTER (WHERE p.acked_snapshot IS NULL
                               OR NOT pg_visible_in_snapshot(c.challenge_xid, p.acked_snapshot))::int
      FROM proxies p, (SELECT challenge_xid FROM certificates WHERE {OWN}) c
     WHERE {IS_LIVE}
"""

_ACCOUNT = "SELECT sealed_key, url FROM acme_accounts WHERE directory = %s"

_NOTE_ACCOUNT = """
    INSERT INTO acme_accounts AS a (directory, sealed_key, url) VALUES (%s, %s, %s)
        ON CONFLICT (directory) DO UPDATE SET directory = a.directory
    RETURNING sealed_key, url
"""


def note_order(connection: Connection[Any], certificate: TakenCertificate, url: str, order_key: str) -> None:
    """Note an order as soon as the authority has taken it, so that after a crash another worker continues it."""
    connection.execute(_NOTE_ORDER, {**certificate.own, "url": url, "order_key": order_key})


def note_challenge(connection: Connection[Any], certificate: TakenCertificate, token: str, answer: str) -> None:
    """Have proxies answer a challenge."""
    connection.execute(_NOTE_CHALLENGE, {**certificate.own, "token": token, "answer": answer})


def proxies_of_challenge(connection: Connection[Any], certificate: TakenCertificate) -> tuple[int, int]:
    """Return how many proxies are live, and how many of them would not answer the challenge yet."""
    live, behind = connection.execute(_PROXIES, certificate.own).fetchone() or (0, 0)
    return live, behind


def account_at(connection: Connection[Any], directory: str) -> tuple[str, str] | None:
    """Return the sealed key and the address of the account there; None where there is none."""
    row = connection.execute(_ACCOUNT, (directory,)).fetchone()
    return row and (row[0], row[1])


def note_account(connection: Connection[Any], directory: str, sealed_key: str, url: str) -> tuple[str, str]:
    """Note an account, and return the one that is there: where somebody else was faster theirs stays."""
    ((key, at),) = connection.execute(_NOTE_ACCOUNT, (directory, sealed_key, url))
    return key, at


def forget_account(connection: Connection[Any], directory: str) -> None:
    """Forget an account that its authority does not know."""
    connection.execute("DELETE FROM acme_accounts WHERE directory = %s", (directory,))


_MOST_CHARACTERS = 300
# by the name of the secret that it is among proxies, as `_secured` makes it
_IS_NAMED = "d.id = c.deployment_id AND d.name || '/' || c.kind || '/' || c.name = ANY(%(names)s)"
_NOTE_REFUSAL = f"""
    UPDATE certificates c SET refused = %(why)s FROM deployments d
     WHERE {_IS_NAMED} AND c.refused IS DISTINCT FROM %(why)s
"""


def note_refused(connection: Connection[Any], names: Collection[str], why: str | None) -> None:
    """Note why a proxy did not take these over; None: it does now."""
    connection.execute(_NOTE_REFUSAL, {"names": sorted(names), "why": why and why[:_MOST_CHARACTERS]})


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
    by_deployment = {key: _tls_material(list(of)) for key, of in groupby(rows, itemgetter(0))}
    return {key: by_deployment.get(key, Secured()) for key in deployment_ids}


def _tls_material(rows: Sequence[tuple[Any, ...]]) -> Secured:
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
