"""Preparations of hosts for a revision: written for each host, started there two at a time, and ended."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from db.locking.row_locks import ALWAYS, count_change, lock
from db.locking.statuses import HAS_LABELS, IS_LACKED
from domain.model.preparation import AT_ONCE, Preparation, PreparationState
from domain.revisions.revision import RevisionSpec, stored_spec

_TAKES = f"""
    h.down_since IS NULL AND h.deaf_since IS NULL AND h.drained_at IS NULL AND {HAS_LABELS}
    AND NOT EXISTS (SELECT FROM host_secrets s WHERE s.host = h.name AND {IS_LACKED})
"""
"""Whether the host `h` gets replicas of the revision `v` now, so that it is to be prepared."""

_ANEW = "id = uuidv7(), state = 'waiting', words = '', started_at = NULL, ended_at = NULL"

_BEGIN = f"""
    INSERT INTO preparations AS p (revision_id, deployment_id, host)
    SELECT v.id, d.id, h.name
      FROM deployments d JOIN revisions v ON v.id = d.deploying_revision_id JOIN hosts h ON {_TAKES}
     WHERE d.id = ANY(%s)
        ON CONFLICT (revision_id, host) DO UPDATE SET {_ANEW}
     WHERE p.state = 'failed'
       AND p.started_at < (SELECT o.started_at FROM deployments d JOIN rollouts o ON o.id = d.rollout_id
                          WHERE d.id = p.deployment_id)
"""

# a preparation that failed before this rollout began is not a failure of this rollout: it runs again
_OF_DEPLOYMENTS = f"""
    SELECT d.id, h.name, CASE WHEN p.started_at < o.started_at AND p.state = 'failed' THEN 'waiting'
                              ELSE coalesce(p.state, 'waiting') END, coalesce(p.words, '')
      FROM deployments d JOIN revisions v ON v.id = d.deploying_revision_id JOIN rollouts o ON o.id = d.rollout_id
      JOIN hosts h ON {_TAKES}
      LEFT JOIN preparations p ON p.revision_id = v.id AND p.host = h.name
     WHERE d.id = ANY(%s) ORDER BY d.id, h.name
"""

_TO_START = "r.status = 'provisioning' AND r.started_at IS NULL AND r.stopped_at IS NULL"
_IS_DEPLOYED = "d.lifecycle = 'deploying' AND d.sub_step = 'preparing' AND d.deploying_revision_id = p.revision_id"
_IS_NEEDED_BY_ROUTE = f"""
    EXISTS (SELECT FROM routes r WHERE r.revision_id = p.revision_id AND r.host = p.host AND {_TO_START})
"""

_BEGIN_FOR_ROUTES = f"""
    INSERT INTO preparations AS p (revision_id, deployment_id, host)
    SELECT DISTINCT r.revision_id, r.deployment_id, r.host
      FROM routes r JOIN revisions v ON v.id = r.revision_id
     WHERE r.host = %(host)s AND {_TO_START} AND v.spec ->> 'prepare' IS NOT NULL
        ON CONFLICT (revision_id, host) DO UPDATE SET {_ANEW}
     WHERE p.state = 'failed'
       AND EXISTS (SELECT FROM routes r WHERE r.revision_id = p.revision_id AND r.host = p.host AND {_TO_START}
                      AND r.created_at > p.started_at)
"""

_OPEN = f"""
    SELECT p.id, p.revision_id, p.deployment_id, d.name AS deployment, v.name AS revision, v.spec::text, v.is_walled,
           p.state, p.words, p.started_at, clock_timestamp() AS now,
           ({_IS_DEPLOYED}) OR {_IS_NEEDED_BY_ROUTE} AS is_wanted
      FROM preparations p JOIN deployments d ON d.id = p.deployment_id JOIN revisions v ON v.id = p.revision_id
     WHERE p.host = %(host)s AND p.state IN ('waiting', 'running') ORDER BY p.id
"""

_UNPREPARED_ROUTES = f"""
    SELECT r.id, r.deployment_id, p.state, p.words, r.status_reason
      FROM routes r JOIN preparations p ON p.revision_id = r.revision_id AND p.host = r.host
     WHERE r.host = %(host)s AND {_TO_START} AND p.state <> 'done'
       AND (p.state <> 'failed' OR p.started_at >= r.created_at)
"""

_TAKE = """
    UPDATE preparations p SET state = 'running', started_at = clock_timestamp()
     WHERE p.id = %(id)s AND p.state = 'waiting'
       AND (SELECT count(*) FROM preparations o JOIN hosts h ON h.name = o.host AND h.down_since IS NULL
             WHERE o.revision_id = p.revision_id AND o.state = 'running') < %(at_once)s
"""

_END = """
    UPDATE preparations SET state = %(state)s, words = %(words)s, ended_at = clock_timestamp()
     WHERE id = %(id)s AND state = 'running'
"""


@dataclass(frozen=True, slots=True)
class OpenPreparation:
    """A preparation that waits or runs. `is_wanted`: its rollout, or a replica, still waits for it."""

    id: UUID
    revision_id: UUID
    deployment_id: UUID
    deployment: str
    revision: str
    spec: RevisionSpec
    is_walled: bool
    state: PreparationState
    words: str
    started_at: datetime | None
    now: datetime
    is_wanted: bool


class UnpreparedRoute(NamedTuple):
    """A route whose replica waits for its host. `words`: those of the preparation; `reason`: the route's own."""

    id: UUID
    deployment_id: UUID
    state: str
    words: str
    reason: str

    @property
    def sentence(self) -> str:
        """The reason that the route should have."""
        beginning = "its host could not be prepared" if self.has_failed else "preparing its host"
        return f"{beginning}: {self.words}" if self.words else beginning

    @property
    def has_failed(self) -> bool:
        """Whether its host could not be prepared."""
        return self.state == PreparationState.FAILED


class _Row(NamedTuple):
    deployment_id: UUID
    host: str
    state: str
    words: str


def begin_preparations(connection: Connection[Any], ids: Collection[UUID]) -> None:
    """Write a preparation for each host that takes the new revision of these deployments, which are locked."""
    connection.execute(_BEGIN, (list(ids),))


def preparations_of(connection: Connection[Any], ids: Collection[UUID]) -> dict[UUID, tuple[Preparation, ...]]:
    """The preparations for the new revisions of these deployments, by deployment."""
    by_deployment: dict[UUID, list[Preparation]] = defaultdict(list)
    for row in map(_Row._make, connection.execute(_OF_DEPLOYMENTS, (list(ids),)).fetchall()):
        by_deployment[row.deployment_id].append(Preparation(row.host, PreparationState(row.state), row.words))
    return {deployment_id: tuple(rows) for deployment_id, rows in by_deployment.items()}


def open_preparations(connection: Connection[Any], host: str) -> tuple[list[OpenPreparation], list[UnpreparedRoute]]:
    """The open preparations of a host, and the replicas that wait for it. Writes those that its replicas need."""
    connection.execute(_BEGIN_FOR_ROUTES, {"host": host})
    rows = connection.cursor(row_factory=dict_row).execute(_OPEN, {"host": host}).fetchall()
    routes = connection.execute(_UNPREPARED_ROUTES, {"host": host}).fetchall()
    return [_open(**row) for row in rows], [UnpreparedRoute(*route) for route in routes]


def _open(spec: str, state: str, **columns: Any) -> OpenPreparation:  # noqa: ANN401
    return OpenPreparation(spec=stored_spec(spec).spec, state=PreparationState(state), **columns)


def take_preparation(connection: Connection[Any], preparation: OpenPreparation) -> bool:
    """Mark it as running. False if it is no longer wanted, or the limit of hosts at once is reached."""
    lock(connection, [preparation.deployment_id])
    return connection.execute(_TAKE, {"id": preparation.id, "at_once": AT_ONCE}).rowcount == 1


def note_preparation(connection: Connection[Any], preparation: OpenPreparation, words: str) -> None:
    """Write the last line of its output."""
    connection.execute("UPDATE preparations SET words = %s WHERE id = %s", (words, preparation.id))


def end_preparation(
    connection: Connection[Any], preparation: OpenPreparation, state: PreparationState, words: str
) -> frozenset[UUID]:
    """Write that it is done, or has failed; returns its deployment, so that a cycle looks at it again."""
    owners: Sequence[UUID] = [preparation.deployment_id]
    lock(connection, owners)
    connection.execute(_END, {"id": preparation.id, "state": state.value, "words": words})
    count_change(connection, owners, mark=ALWAYS)
    return frozenset(owners)


def drop_preparation(connection: Connection[Any], preparation: OpenPreparation) -> None:
    """Delete a preparation that nobody waits for and of which nothing runs."""
    connection.execute("DELETE FROM preparations WHERE id = %s AND state <> 'done'", (preparation.id,))
