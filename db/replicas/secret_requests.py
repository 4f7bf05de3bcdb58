"""Keeps which secrets hosts are asked for, by reference, and what each answers. No value comes here."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from psycopg import Connection

from db.connection.arrays import columns, named_row
from db.locking.statuses import REFERENCES, leased_for
from db.replicas.host_placement import hosts_up
from domain.replicas.host_choice import takers
from domain.revisions.secret_refs import SecretCheck
from domain.text.errors import RollwayError

REFERENCES_TO_START = f"""
    SELECT DISTINCT reference FROM ({REFERENCES}) r (reference) WHERE v.spec->>'runtime' IS DISTINCT FROM 'external'
"""
"""Secrets of the revision `v` that hosts need to start its replicas."""

_ASKED = columns("host text, reference text")

MOST_OPEN = 200
"""References of a deployment that hosts have not looked at yet, or lack: its revisions may have 100 each."""

_ASK = f"""
    INSERT INTO host_secrets (host, reference, asked_by) SELECT host, reference, %(asked_by)s FROM {_ASKED}
    ON CONFLICT (host, reference, asked_by)
    DO UPDATE SET asked_at = clock_timestamp(), checked_at = NULL, leased_until = NULL
"""

# what a worker looks at stays: else its deployment had one more place
_IS_UNWANTED = f"""
    h.asked_at < clock_timestamp() - interval '1 minute' AND NOT h.{leased_for("interval '1 minute'")}
    AND NOT EXISTS (
        SELECT FROM deployments d JOIN revisions v ON v.id IN (d.current_revision_id, d.deploying_revision_id)
         WHERE d.name = h.asked_by AND h.reference IN ({REFERENCES}))
"""
_FORGET_UNWANTED = f"DELETE FROM host_secrets h WHERE asked_by = %s AND {_IS_UNWANTED}"

_OPEN = """
    SELECT count(DISTINCT reference) FROM host_secrets
     WHERE asked_by = %s AND reference <> ALL(%s) AND (checked_at IS NULL OR fault IS NOT NULL)
"""

_CHECKS = f"""
    SELECT u.host, u.reference, s.checked_at IS NOT NULL AS is_answered, s.fault
      FROM {_ASKED}
      LEFT JOIN host_secrets s ON s.host = u.host AND s.reference = u.reference AND s.asked_by = %(asked_by)s
     ORDER BY u.host, u.reference
"""

_IS_LEASED = leased_for("%(lease)s")
_TAKE = f"""
    WITH asked AS (
        SELECT *, {_IS_LEASED} AS is_leased,
               count(*) FILTER (WHERE {_IS_LEASED}) OVER (PARTITION BY asked_by) AS leases
          FROM host_secrets
         WHERE host = %(host)s AND (reference LIKE 'command:%%') = %(are_commands)s
           AND (checked_at IS NULL
                OR fault IS NOT NULL AND checked_at NOT BETWEEN clock_timestamp() - %(again)s AND clock_timestamp())),
    turns AS (
        SELECT reference, asked_by, asked_at, leases,
               row_number() OVER (PARTITION BY asked_by
                                  ORDER BY checked_at IS NOT NULL, asked_at, reference) AS turn
          FROM asked WHERE NOT is_leased),
    taken AS (
        SELECT s.host, s.reference, s.asked_by
          FROM host_secrets s JOIN turns ON s.reference = turns.reference AND s.asked_by = turns.asked_by
         WHERE s.host = %(host)s AND NOT {_IS_LEASED} AND turns.leases + turns.turn <= %(most)s
         ORDER BY turns.leases + turns.turn, turns.asked_at, s.reference LIMIT %(limit)s
           FOR UPDATE OF s SKIP LOCKED)
    UPDATE host_secrets s SET leased_until = clock_timestamp() + %(lease)s
      FROM taken WHERE s.host = taken.host AND s.reference = taken.reference AND s.asked_by = taken.asked_by
    RETURNING s.reference, s.asked_by, clock_timestamp() AS taken_at
"""
"""Turns by deployment: the first of each, then the second of each, up to a limit for each deployment."""

_IS_ASKED = """
    SELECT EXISTS (SELECT FROM host_secrets
                    WHERE host = %(host)s
                      AND (checked_at IS NULL
                           OR fault IS NOT NULL
                              AND checked_at NOT BETWEEN clock_timestamp() - %(again)s AND clock_timestamp()))
"""

_ANSWERED = columns("reference text, asked_by text, taken timestamptz, fault text")

_ANSWER = f"""
    UPDATE host_secrets s SET checked_at = clock_timestamp(), fault = u.fault, leased_until = NULL
      FROM {_ANSWERED}
     WHERE s.host = %(host)s AND s.reference = u.reference AND s.asked_by = u.asked_by AND s.asked_at <= u.taken
"""

_NOTE_FAULT = """
    INSERT INTO host_secrets (host, reference, asked_by, checked_at, fault)
    SELECT name, %s, %s, clock_timestamp(), %s FROM hosts WHERE name = %s
    ON CONFLICT (host, reference, asked_by) DO UPDATE SET checked_at = clock_timestamp(), fault = excluded.fault
"""

_FORGET = f"""
    DELETE FROM host_secrets h
     WHERE host = %s AND (asked_at < clock_timestamp() - interval '1 hour' OR {_IS_UNWANTED})
"""


class TakenSecret(NamedTuple):
    """A reference that a worker of the host looks at, for which deployment, and since when."""

    reference: str
    asked_by: str
    taken_at: datetime


class TooManySecretsError(RollwayError):
    """A deployment waits for more secrets than it may."""


class UnaskedSecretsError(Exception):
    """A command starts a revision whose secrets no host was asked for. Nobody is told: ask, and try again."""

    def __init__(self, deployment: str, references: Sequence[str]) -> None:
        super().__init__(deployment, *references)
        self.deployment = deployment
        self.references = references


def ask_for_secrets(connection: Connection, deployment: str, references: Sequence[str]) -> None:
    """Ask every host that may get replicas whether it can have these secrets, also if it has said so before.

    Of what was asked before, only what a revision of its needs still counts. Raises TooManySecretsError.
    """
    connection.execute(_FORGET_UNWANTED, (deployment,))
    ((others,),) = connection.execute(_OPEN, (deployment, list(references)))
    if others + len(references) > MOST_OPEN:
        message = (
            f"{deployment} waits for {others} secrets that hosts have not looked at yet, or lack, and {MOST_OPEN} are "
            "the most; wait until they have, or put right what they lack"
        )
        raise TooManySecretsError(message, deployment=deployment)
    parameters = _ASKED.arrays(_of_each_host(connection, references), asked_by=deployment)
    connection.cursor().execute(_ASK, parameters)


def secret_checks(connection: Connection, deployment: str, references: Sequence[str]) -> list[SecretCheck]:
    """Read what the hosts that may get replicas say of these secrets: they are not the same for each deployment."""
    parameters = _ASKED.arrays(_of_each_host(connection, references), asked_by=deployment)
    return [SecretCheck(*row) for row in connection.cursor().execute(_CHECKS, parameters).fetchall()]


@dataclass(frozen=True, slots=True)
class Share:
    """A worker's share of what its host was asked for: `limit` at once, `most` of one deployment by all workers.

    `are_commands`: programs, or else files and variables. `lease`: after this time another worker looks.
    """

    are_commands: bool
    limit: int
    most: int
    lease: timedelta


def is_asked(connection: Connection, host: str, again_after: timedelta) -> bool:
    """Whether there is anything that `take_secrets` may take, now or once another worker has let go of it."""
    ((is_open,),) = connection.execute(_IS_ASKED, {"host": host, "again": again_after}).fetchall()
    return bool(is_open)


def take_secrets(connection: Connection, host: str, again_after: timedelta, share: Share) -> list[TakenSecret]:
    """Take what the host was asked for and has not looked at since, and what it lacked when it looked a while ago."""
    cursor = connection.cursor(row_factory=named_row(TakenSecret))
    return cursor.execute(_TAKE, {"host": host, "again": again_after, **asdict(share)}).fetchall()


def answer(connection: Connection, host: str, answers: Iterable[tuple[str, str, datetime, str | None]]) -> None:
    """Write down why a deployment cannot have each secret on the host, or None, if it asked before that was looked at.

    What nobody has asked for since an hour is forgotten, and since a minute where it is of no revision that runs or is
    rolled out: a host that was not asked is not passed over.
    """
    connection.cursor().execute(_ANSWER, _ANSWERED.arrays(answers, host=host))
    connection.execute(_FORGET, (host,))


def note_fault(connection: Connection, host: str, deployment: str, reference: str, fault: str) -> None:
    """A replica could not be started on the host without this secret: other hosts get replicas until it looks again."""
    connection.execute(_NOTE_FAULT, (reference, deployment, fault, host))


def _of_each_host(connection: Connection, references: Sequence[str]) -> list[tuple[str, str]]:
    return [(host, reference) for host in takers(hosts_up(connection)) for reference in references]
