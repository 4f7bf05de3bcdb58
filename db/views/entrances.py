"""The reads for people: where deployments are reached, and whose an entrance is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from domain.traffic.entrances import in_order
from domain.traffic.published import Entrance, EntranceKind

_REACHED = """
    SELECT d.request_timeout_seconds, n.kind, n.value, n.strip_prefix
      FROM deployments d LEFT JOIN entrances n ON n.deployment_id = d.id
     WHERE d.id = %s
"""

_OWNERS = """
    SELECT n.kind, n.value, d.name
      FROM entrances n JOIN deployments d ON d.id = n.deployment_id
     WHERE (n.kind, n.value) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
       AND d.lifecycle <> 'destroyed' AND d.name <> %s
"""


@dataclass(frozen=True, slots=True)
class ReachedView:
    """Where a deployment is reached, and how long a request to it may take; None for no limit."""

    entrances: tuple[Entrance, ...]
    request_timeout_seconds: float | None


def reached_at(connection: Connection[Any], deployment_id: UUID) -> ReachedView:
    """Of one that is known to exist."""
    rows = connection.execute(_REACHED, (deployment_id,)).fetchall()
    found = (Entrance(EntranceKind(row[1]), row[2], row[3]) for row in rows if row[1] is not None)
    return ReachedView(in_order(found), rows[0][0])


def owners_of(connection: Connection[Any], wanted: Iterable[Entrance], deployment: str) -> dict[Entrance, str]:
    """Those of `wanted` that another deployment than this one has, each with its name."""
    keys = {(one.kind.value, one.value): one for one in wanted}
    kinds, values = [kind for kind, _ in keys], [value for _, value in keys]
    rows = connection.execute(_OWNERS, (kinds, values, deployment)).fetchall()
    return {keys[kind, value]: name for kind, value, name in rows}
