"""Keeps which secrets hosts are asked for, by reference, and what each answers. No value comes here."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from psycopg import Connection

from db.locking.rows import columns, named_row
from db.placing import OFFSETS, REFERENCES
from domain.replicas.clocks import hosts_in_time
from domain.revisions.secrets import SecretCheck

REFERENCES_TO_START = f"""
    SELECT DISTINCT reference FROM ({REFERENCES}) r (reference) WHERE v.spec->>'runtime' IS DISTINCT FROM 'external'
"""
"""Secrets of the revision `v` that hosts need to start its replicas."""

_ASKED = columns("host text, reference text")

_ASK = f"""
    INSERT INTO host_secrets (host, reference) SELECT host, reference FROM {_ASKED}
    ON CONFLICT (host, reference) DO UPDATE SET asked_at = clock_timestamp(), checked_at = NULL
"""

_CHECKS = f"""
    SELECT u.host, u.reference, s.checked_at IS NOT NULL AS is_answered, s.fault
      FROM {_ASKED} LEFT JOIN host_secrets s ON s.host = u.host AND s.reference = u.reference
     ORDER BY u.host, u.reference
"""

# a moment that lies ahead is from before the database's clock was set back
_TO_CHECK = """
    SELECT reference, asked_at FROM host_secrets
     WHERE host = %s
       AND (checked_at IS NULL
            OR fault IS NOT NULL
               AND checked_at NOT BETWEEN clock_timestamp() - make_interval(secs => %s) AND clock_timestamp())
     ORDER BY checked_at IS NOT NULL, asked_at, reference LIMIT %s
"""

_ANSWERED = columns("reference text, asked timestamptz, fault text")

_ANSWER = f"""
    UPDATE host_secrets s SET checked_at = clock_timestamp(), fault = u.fault
      FROM {_ANSWERED} WHERE s.host = %(host)s AND s.reference = u.reference AND s.asked_at = u.asked
"""

_NOTE_FAULT = """
    INSERT INTO host_secrets (host, reference, checked_at, fault)
    SELECT name, %s, clock_timestamp(), %s FROM hosts WHERE name = %s
    ON CONFLICT (host, reference) DO UPDATE SET checked_at = clock_timestamp(), fault = excluded.fault
"""

_FORGET = "DELETE FROM host_secrets WHERE host = %s AND asked_at < clock_timestamp() - interval '1 day'"


class AskedSecret(NamedTuple):
    """A reference that a host shall look at, and when it was asked."""

    reference: str
    asked_at: datetime


class UnaskedSecretsError(Exception):
    """A command starts a revision whose secrets no host was asked for. Nobody is told: ask, and try again."""

    def __init__(self, references: Sequence[str]) -> None:
        super().__init__(*references)
        self.references = references


def ask_for_secrets(connection: Connection, references: Sequence[str]) -> None:
    """Ask every host that may get replicas whether it can have these secrets, also if it has said so before."""
    connection.cursor().execute(_ASK, _ASKED.arrays(_of_each_host(connection, references)))


def secret_checks(connection: Connection, references: Sequence[str]) -> list[SecretCheck]:
    """Read what the hosts that may get replicas say of these secrets."""
    asked = _ASKED.arrays(_of_each_host(connection, references))
    return [SecretCheck(*row) for row in connection.cursor().execute(_CHECKS, asked).fetchall()]


def secrets_to_check(connection: Connection, host: str, again_after_seconds: float, limit: int) -> list[AskedSecret]:
    """Read what the host was asked for and has not looked at since, then what it lacked when it looked a while ago.

    No more than `limit`, those first that have waited longest.
    """
    cursor = connection.cursor(row_factory=named_row(AskedSecret))
    return cursor.execute(_TO_CHECK, (host, again_after_seconds, limit)).fetchall()


def answer(connection: Connection, host: str, answers: Iterable[tuple[str, datetime, str | None]]) -> None:
    """Write down why the host cannot have each secret, or None. Who has asked again meanwhile gets another answer.

    What nobody has asked for since a day is forgotten: a host that was not asked is not passed over.
    """
    connection.cursor().execute(_ANSWER, _ANSWERED.arrays(answers, host=host))
    connection.execute(_FORGET, (host,))


def note_fault(connection: Connection, host: str, reference: str, fault: str) -> None:
    """A replica could not be started on the host for want of this secret: until it looks again, others get them."""
    connection.execute(_NOTE_FAULT, (reference, fault, host))


def _of_each_host(connection: Connection, references: Sequence[str]) -> list[tuple[str, str]]:
    hosts = hosts_in_time(dict(connection.cursor().execute(OFFSETS).fetchall()))
    return [(host, reference) for host in sorted(hosts) for reference in references]
