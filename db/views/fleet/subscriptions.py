"""The reads for people: who is told of transitions, and how far that has come."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

_SUBSCRIPTIONS = """
    SELECT s.name, s.webhook, s.task, s.queue, s.types, s.deployments, s.give_up_after_seconds, s.actor, s.created_at,
           o.waiting, o.oldest_at, o.given_up, o.why, clock_timestamp() AS now
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
    """A subscription; how many events wait, since when the oldest, how many were given up, why the last try failed."""

    name: str
    webhook: str | None
    task: str | None
    queue: str | None
    types: list[str]
    deployments: list[str]
    give_up_after_seconds: int
    actor: str
    created_at: datetime
    waiting: int
    oldest_at: datetime | None
    given_up: int
    why: str | None
    now: datetime


def all_subscriptions(connection: Connection[Any]) -> list[SubscriptionView]:
    """Who is told of transitions: every subscription, by name."""
    return connection.cursor(row_factory=class_row(SubscriptionView)).execute(_SUBSCRIPTIONS).fetchall()
