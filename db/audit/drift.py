"""Rows that may be for a while, and should not stay: replicas in no good place, looks and events that nobody sees to.

Each check is a statement of its own that says name and sentence, at most MOST of them. Nothing is locked or changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from psycopg import Connection
from pydantic import ValidationError
from sqlalchemy import Engine

from db.audit.receipts import KEPT
from db.connection.transactions import in_transaction
from db.locking.statuses import RUNNING
from domain.replicas.host_choice import EXTERNAL
from domain.revisions.revision import RevisionSpec, revision_name

MOST = 100
"""Findings of one check: more would not tell more."""

# a port may have gone to the next replica before the one that had it is known to be dead
PLACES = f"""
    SELECT string_agg(DISTINCT d.name, ' and '),
           concat('replicas ', string_agg(r.id::text, ' and ' ORDER BY r.id), ' on ', r.host, ' have one address, ',
                  r.address)
      FROM routes r JOIN deployments d ON d.id = r.deployment_id
     WHERE r.{RUNNING} AND r.stopped_at IS NULL AND r.host <> '{EXTERNAL}'
       AND greatest(r.started_at, r.status_changed_at) < clock_timestamp() - interval '2 minutes'
     GROUP BY r.host, r.address
    HAVING count(*) > 1
    UNION ALL
    SELECT max(d.name), concat(count(*), ' replicas are on host ', r.host, ', which nobody knows')
      FROM routes r JOIN deployments d ON d.id = r.deployment_id
     WHERE r.stopped_at IS NULL AND r.host <> '{EXTERNAL}' AND NOT EXISTS (SELECT FROM hosts h WHERE h.name = r.host)
     GROUP BY r.host
     ORDER BY 1, 2
"""

# a freeze may last for months, and what it holds is looked at before its end
LOOKS = """
    SELECT name, concat('it is looked at again at ', due_at AT TIME ZONE 'UTC', ' UTC: in more than a year')
      FROM deployments
     WHERE due_at > clock_timestamp() + interval '366 days'
     ORDER BY name
"""

OPEN_ROLLOUTS = """
    SELECT d.name, concat('rollout ', o.id, ' has been open for ', extract(day FROM clock_timestamp() - o.started_at),
                          ' days')
      FROM rollouts o JOIN deployments d ON d.id = o.deployment_id
     WHERE o.ended_at IS NULL AND o.started_at < clock_timestamp() - interval '30 days'
     ORDER BY o.started_at
"""

# its last try, at most 300 s later, gives an event up
EVENTS = """
    SELECT s.name, concat(count(*), ' events are older than it waits for, the oldest of ',
                          min(o.at) AT TIME ZONE 'UTC', ' UTC, and nobody has given them up')
      FROM outbox o JOIN subscriptions s ON s.name = o.subscription
     WHERE o.given_up_at IS NULL
       AND o.at < clock_timestamp() - make_interval(secs => s.give_up_after_seconds) - interval '1 hour'
     GROUP BY s.name
     ORDER BY s.name
"""

# of a deployment that has all its receipts, since the oldest ones are not kept
UNSEALED = f"""
    SELECT d.name, concat('rollout ', o.id, ' ended at ', o.ended_at AT TIME ZONE 'UTC', ' UTC, and has no receipt')
      FROM rollouts o JOIN deployments d ON d.id = o.deployment_id
     WHERE o.ended_at < clock_timestamp() - interval '1 hour'
       AND NOT EXISTS (SELECT FROM receipts r WHERE r.rollout_id = o.id)
       AND (SELECT count(*) FROM receipts r WHERE r.deployment_id = d.id) < {KEPT}
     ORDER BY o.ended_at
"""

_REVISIONS = """
    SELECT v.id, v.deployment_id, d.name, v.name, v.spec
      FROM revisions v JOIN deployments d ON d.id = v.deployment_id
     WHERE v.id > %s
     ORDER BY v.id
     LIMIT %s
"""
_PAGE = 500
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Renamed:
    """A revision whose name looks as if it was made from its content, which has another one."""

    deployment: str
    name: str
    right: str


def drift(connection: Connection[Any], check: str) -> list[str]:
    rows = connection.execute(f"SELECT * FROM ({check}) found LIMIT {MOST}").fetchall()
    return [f"{name}: {sentence}" for name, sentence in rows]


def renamed_revisions(engine: Engine) -> Iterator[Renamed]:
    """Look at all revisions, page by page, each read in a transaction of its own."""
    after: UUID | None = UUID(int=0)
    while after is not None:
        rows = in_transaction(engine, partial(_page, after=after))
        for _, _, deployment, name, spec in rows:
            if _is_made(deployment, name) and name != (right := _name(deployment, spec)):
                yield Renamed(deployment, name, right)
        after = rows[-1][0] if len(rows) == _PAGE else None


def _page(connection: Connection[Any], after: UUID) -> list[Any]:
    return connection.execute(_REVISIONS, (after, _PAGE)).fetchall()


def _is_made(deployment: str, name: str) -> bool:
    digits = name.removeprefix(f"{deployment}-")
    return digits != name and len(digits) == _DIGITS and set(digits) <= set("0123456789abcdef")


def _name(deployment: str, spec: object) -> str:
    try:
        return revision_name(deployment, RevisionSpec.model_validate(spec))
    except ValidationError:
        return "none, for this release cannot read it"
