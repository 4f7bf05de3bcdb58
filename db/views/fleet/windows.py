"""The reads for people: freezes, with when they are on, and groups, with who rolls out there."""

from dataclasses import asdict, dataclass
from datetime import datetime

from psycopg import Connection
from psycopg.rows import class_row

from db.connection.engine import database_now
from db.freezes import FreezeRow, freeze_rows

_GROUPS = """
    SELECT g.name, g.most_at_once, g.in_order, g.actor, g.reason, g.created_at,
           array_agg(m.deployment ORDER BY m.position) AS deployments,
           coalesce(array_agg(m.deployment ORDER BY m.position) FILTER (WHERE o.steps > 0), '{}') AS under_way,
           coalesce(array_agg(m.deployment ORDER BY o.started_at) FILTER (WHERE o.steps = 0), '{}') AS waiting
      FROM deployment_groups g
      JOIN deployment_group_members m ON m.group_name = g.name
      LEFT JOIN deployments d ON d.name = m.deployment AND d.lifecycle = 'deploying'
      LEFT JOIN rollouts o ON o.id = d.rollout_id
     GROUP BY g.name
     ORDER BY g.name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeView(FreezeRow):
    """A freeze; until when it is on, if it is, and when it begins next, if it does."""

    frozen_until: datetime | None
    next_start: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group; whose rollouts are under way, and whose have not begun to move, in the order they were asked for."""

    name: str
    most_at_once: int | None
    in_order: bool
    deployments: list[str]
    under_way: list[str]
    waiting: list[str]
    actor: str
    reason: str
    created_at: datetime


def freezes_shown(connection: Connection) -> list[FreezeView]:
    """The windows in which nothing starts, by name."""
    now = database_now(connection)
    return [_shown(row, now) for row in freeze_rows(connection)]


def _shown(row: FreezeRow, now: datetime) -> FreezeView:
    window = row.freeze.window
    return FreezeView(**asdict(row), frozen_until=window.ends(now), next_start=window.next_start(now), now=now)


def groups_shown(connection: Connection) -> list[GroupView]:
    """The groups whose deployments share a budget of rollouts, by name."""
    return connection.cursor(row_factory=class_row(GroupView)).execute(_GROUPS).fetchall()
