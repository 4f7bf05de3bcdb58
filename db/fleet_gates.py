"""Freezes and groups as rows: what may hold a rollout, and which freeze is on for a deployment."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from psycopg import Connection
from psycopg.rows import DictRow, class_row, dict_row

from db.connection.transactions import database_now
from domain.steering.gates import AbsoluteWindow, CronWindow, Freeze, Frozen, Gate, Group, OpenRollout, frozen

_FREEZES = """
    SELECT name, cron, time_zone, duration_seconds, starts_at, ends_at, deployments, groups, pauses, actor, reason,
           created_at
      FROM freezes
     ORDER BY name
"""

GROUP_OF = "SELECT group_name FROM deployment_group_members WHERE deployment = ANY(%s)"
"""The group of each of some deployments, by name."""

_GROUPS = f"""
    SELECT g.name, g.most_at_once, g.in_order, m.deployment, o.id, o.started_at, o.through_freeze,
           o.steps > 0 AS has_moved, o.is_undo OR d.sub_step = 'rolling_back' AS is_exit,
           d.paused_at IS NOT NULL AS is_paused
      FROM deployment_groups g
      JOIN deployment_group_members m ON m.group_name = g.name
      LEFT JOIN deployments d ON d.name = m.deployment AND d.lifecycle = 'deploying'
      LEFT JOIN rollouts o ON o.id = d.rollout_id
     WHERE g.name IN ({GROUP_OF})
     ORDER BY g.name, m.position
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeRow:
    """A freeze as it is stored."""

    name: str
    cron: str | None
    time_zone: str | None
    duration_seconds: int | None
    starts_at: datetime | None
    ends_at: datetime | None
    deployments: list[str]
    groups: list[str]
    pauses: bool
    actor: str
    reason: str
    created_at: datetime

    @property
    def freeze(self) -> Freeze:
        return Freeze(self.name, self._window, tuple(self.deployments), tuple(self.groups), self.pauses, self.reason)

    @property
    def _window(self) -> CronWindow | AbsoluteWindow:
        """A CHECK says that a row has one of them."""
        if self.starts_at is not None and self.ends_at is not None:
            return AbsoluteWindow(self.starts_at, self.ends_at)
        duration = timedelta(seconds=self.duration_seconds or 0)
        return CronWindow(self.cron or "", ZoneInfo(self.time_zone or "UTC"), duration)


def all_freezes(connection: Connection) -> tuple[Freeze, ...]:
    return tuple(row.freeze for row in freeze_rows(connection))


def freeze_rows(connection: Connection) -> list[FreezeRow]:
    """The freezes as they were set, with their actors."""
    return connection.cursor(row_factory=class_row(FreezeRow)).execute(_FREEZES).fetchall()


def frozen_now(connection: Connection, deployment: str, now: datetime | None = None) -> Frozen | None:
    """The freeze that is on for a deployment of that name. `now`: asked for where it is left out."""
    freezes = all_freezes(connection)
    if not freezes:
        return None
    row = connection.execute(GROUP_OF, ([deployment],)).fetchone()
    return frozen(freezes, deployment, row[0] if row else None, now or database_now(connection))


def gates_of(connection: Connection, deployments: Sequence[str]) -> dict[str, Gate]:
    """Read what may hold the rollouts of these deployments, by name: two statements."""
    freezes, groups = all_freezes(connection), _groups(connection, deployments)
    return {name: Gate(freezes, *groups.get(name, (None, ()))) for name in deployments}


def _groups(connection: Connection, deployments: Sequence[str]) -> dict[str, tuple[Group, tuple[OpenRollout, ...]]]:
    """The groups of these deployments, by the name of each member."""
    rows: dict[str, list[DictRow]] = defaultdict(list)
    for row in connection.cursor(row_factory=dict_row).execute(_GROUPS, (deployments,)).fetchall():
        rows[row["name"]].append(row)
    by_name: dict[str, tuple[Group, tuple[OpenRollout, ...]]] = {}
    for name, members in rows.items():
        names = tuple(row["deployment"] for row in members)
        group = Group(name, names, members[0]["most_at_once"], members[0]["in_order"])
        rollouts = tuple(_open_rollout(row) for row in members if row["id"] is not None)
        by_name |= dict.fromkeys(names, (group, rollouts))
    return by_name


def _open_rollout(row: Mapping[str, Any]) -> OpenRollout:
    return OpenRollout(**{name: row[name] for name in OpenRollout.__match_args__})
