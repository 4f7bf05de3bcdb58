"""Gives each new replica its host: reads what `domain.replicas.placement` makes the choice by."""

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection

from db.locking.rows import named_row
from db.locking.statuses import ACTIVE
from domain.replicas.placement import PlacingGrounds, Unplaced

MOST_AT_ONCE = 500
"""In one transaction, which holds up whoever waits for their deployments."""

REFERENCES = "SELECT jsonb_path_query(v.spec, '$.env.*.secret') #>> '{}'"
"""The secrets that the revision `v` refers to."""

OFFSETS = "SELECT name, clock_offset_seconds FROM hosts WHERE down_since IS NULL"
"""By how much the clock of each host is off that is up; `hosts_in_time` says which of them may get replicas."""

_NEEDS = f"""
    SELECT v.id, v.spec->>'runtime' = 'external' AS is_external,
           ARRAY(SELECT DISTINCT s.host FROM host_secrets s
                  WHERE s.fault IS NOT NULL AND s.reference IN ({REFERENCES})) AS lacking
      FROM revisions v WHERE v.id = ANY(%b)
"""

# replicas are counted only where there is a choice: Postgres asks for the hosts first, and then reads no route
_COUNTS = (
    f"{ACTIVE} AND host IS NOT NULL AND id <> ALL(%b) AND (SELECT count(*) > 1 FROM hosts WHERE down_since IS NULL)"
)

_OF_DEPLOYMENT = f"""
    SELECT deployment_id, host, count(*)::int FROM routes
     WHERE {_COUNTS} AND deployment_id = ANY(%b) GROUP BY deployment_id, host
"""

_OF_ALL = f"SELECT host, count(*)::int FROM routes WHERE {_COUNTS} GROUP BY host"


class Wanted(NamedTuple):
    """A new replica, by the ids of its deployment and of its revision."""

    deployment_id: UUID
    revision_id: UUID


class _Needs(NamedTuple):
    """The needs of a revision of its host. One that is not there needs nothing: Postgres refuses its routes."""

    id: UUID
    is_external: bool = False
    lacking: Sequence[str] = ()


def grounds_for(connection: Connection, wanted: Sequence[Wanted], leaving: Collection[UUID] = ()) -> PlacingGrounds:
    """Read what the hosts of these replicas, whose deployments are locked, are chosen by.

    Those beyond the first MOST_AT_ONCE must wait. Routes that are `leaving` count as gone already.
    """
    now = wanted[:MOST_AT_ONCE]
    if not now:
        return PlacingGrounds()
    gone = list(leaving)
    needs = connection.cursor(binary=True, row_factory=named_row(_Needs))
    needs.execute(_NEEDS, ([*{want.revision_id for want in now}],))
    offsets = connection.execute(OFFSETS)
    of_deployment = connection.execute(_OF_DEPLOYMENT, (gone, [*{want.deployment_id for want in now}]))
    of_all = connection.execute(_OF_ALL, (gone,))
    known = {revision.id: revision for revision in needs.fetchall()}
    unplaced = [_unplaced(want, known.get(want.revision_id, _Needs(want.revision_id))) for want in now]
    own = {(deployment, host): count for deployment, host, count in of_deployment.fetchall()}
    return PlacingGrounds(unplaced, dict(offsets.fetchall()), own, dict(of_all.fetchall()), len(wanted) - len(now))


def _unplaced(want: Wanted, needs: _Needs) -> Unplaced:
    return Unplaced(want.deployment_id, needs.is_external, needs.lacking)
