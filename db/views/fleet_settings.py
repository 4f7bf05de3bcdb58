"""The reads for people: freezes, with their times; groups, with their rollouts; and subscriptions to events."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from db.connection.transactions import database_now
from db.fleet_gates import FreezeRow, freeze_rows

_GROUPS = """
    SELECT g.name, g.most_at_once, g.in_order, g.actor, g.reason, g.created_at,
           array_agg(m.deployment ORDER BY m.position) AS deployments,
           coalesce(array_agg(m.deployment ORDER BY m.position) FILTER (WHERE o.steps > 0), '{}') AS under_way,
           coalesce(array_agg(m.deployment ORDER BY o.started_at) FILTER (WHERE o.steps = 0), '{}') AS waiting
      FROM deployment_groups g
      JOIN deployment_group_members m ON m.group_name = g.name
      LEFT JOIN LATERAL (SELECT rollout_id FROM deployments
                          WHERE name = m.deployment AND lifecycle <> 'destroyed' LIMIT 1) d ON true
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
    return [_freeze_view(row, now) for row in freeze_rows(connection)]


def _freeze_view(row: FreezeRow, now: datetime) -> FreezeView:
    window = row.freeze.window
    return FreezeView(**asdict(row), frozen_until=window.ends(now), next_start=window.next_start(now), now=now)


def groups_shown(connection: Connection) -> list[GroupView]:
    """The groups whose deployments share a budget of rollouts, by name."""
    return connection.cursor(row_factory=class_row(GroupView)).execute(_GROUPS).fetchall()


_SUBSCRIPTIONS = """
    SELECT s.name, s.webhook, s.task, s.queue, s.types, s.deployments, s.give_up_after_seconds, s.actor, s.created_at,
           s.ended_at, s.ended_why, o.waiting, o.oldest_at, o.given_up, o.why, clock_timestamp() AS now
      FROM subscriptions s CROSS JOIN LATERAL (
           SELECT count(*) FILTER (WHERE given_up_at IS NULL) AS waiting,
                  min(at) FILTER (WHERE given_up_at IS NULL) AS oldest_at,
                  count(*) FILTER (WHERE given_up_at IS NOT NULL) AS given_up,
                  (array_agg(why ORDER BY due_at DESC) FILTER (WHERE why IS NOT NULL))[1] AS why
             FROM outbox WHERE subscription = s.name) o
     ORDER BY s.name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionView:
    """A subscription; how many events wait, since when the oldest, how many were given up, why the last try failed.

    `ended_at`: since when its receiver wants no further events, and what it said; None while it is told. `queued`:
    messages that lie in the queue of its task; None of a webhook, and where Redis is away.
    """

    name: str
    webhook: str | None
    task: str | None
    queue: str | None
    types: list[str]
    deployments: list[str]
    give_up_after_seconds: int
    actor: str
    created_at: datetime
    ended_at: datetime | None
    ended_why: str | None
    waiting: int
    oldest_at: datetime | None
    given_up: int
    why: str | None
    now: datetime
    queued: int | None = None


def has_subscriptions(connection: Connection[Any]) -> bool:
    """Whether anybody subscribes to events."""
    return connection.execute("SELECT EXISTS (SELECT FROM subscriptions)").fetchone() == (True,)


def all_subscriptions(connection: Connection[Any]) -> list[SubscriptionView]:
    """Read who is told of transitions: every subscription, by name."""
    return connection.cursor(row_factory=class_row(SubscriptionView)).execute(_SUBSCRIPTIONS).fetchall()
