"""The reads for people: freezes, with when they are on; groups, with who rolls out there; and who is told of events."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from db.certificates import CertificateView, certificates_of
from db.connection.engine import database_now
from db.freezes import FreezeRow, freeze_rows
from db.locking.rows import columns
from domain.traffic.entrances import in_order
from domain.traffic.published import Entrance, EntranceKind, RequestRules, known_rules
from domain.traffic.release import Reached, known_release
from domain.traffic.worded import entrances_in_words

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

    `ended_at`: since when its receiver wants no more, and what it said; None while it is told. `queued`: messages that
    lie in the queue of its task; None of a webhook, and where Redis is away.
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


def all_subscriptions(connection: Connection[Any]) -> list[SubscriptionView]:
    """Read who is told of transitions: every subscription, by name."""
    return connection.cursor(row_factory=class_row(SubscriptionView)).execute(_SUBSCRIPTIONS).fetchall()


_REACHED = """
    SELECT d.request_timeout_seconds, d.hedge_after_seconds, d.preview, d.idle_timeout_seconds, d.protocol, d.rules,
           o.traffic, n.kind, n.value, n.strip_prefix
      FROM deployments d LEFT JOIN entrances n ON n.deployment_id = d.id AND NOT n.reserved
      LEFT JOIN rollouts o ON o.id = d.rollout_id
     WHERE d.id = %s
"""

_WANTED = columns("kind text, value text")

_OWNERS = f"""
    SELECT n.kind, n.value, d.name
      FROM entrances n JOIN deployments d ON d.id = n.deployment_id
     WHERE (n.kind, n.value) IN (SELECT * FROM {_WANTED})
       AND d.lifecycle <> 'destroyed' AND d.name <> %(deployment)s
"""


_KINDS = {kind.value: kind for kind in EntranceKind}


@dataclass(frozen=True, slots=True)
class ReachedView:
    """Shows where a deployment is reached, what proxies do with its requests, and the certificates that they show.

    Entrances of a kind that only a newer release knows are left out. `brings`: what of it comes with the rollout under
    way, and when, in words.
    """

    entrances: tuple[Entrance, ...]
    rules: RequestRules
    certificates: tuple[CertificateView, ...] = ()
    brings: str = ""

    @property
    def reached(self) -> Reached:
        """The entrances with the rules."""
        return self.entrances, self.rules

    @property
    def hosts(self) -> list[str]:
        """The host names by which it is reached."""
        return [entrance.value for entrance in self.entrances if entrance.kind is EntranceKind.HOST]


def reached_at(connection: Connection[Any], deployment_id: UUID) -> ReachedView:
    """Read where a deployment that is known to exist is reached."""
    rows = connection.execute(_REACHED, (deployment_id,)).fetchall()
    found = (Entrance(_KINDS[kind], value, strip_prefix) for *_, kind, value, strip_prefix in rows if kind in _KINDS)
    timeout, hedge, preview, idle, protocol, together, stored = rows[0][:7]
    rules = known_rules(timeout, hedge, idle, protocol, together, preview=preview)
    certificates = () if rules.tls is None else tuple(certificates_of(connection, deployment_id))
    release = known_release(stored)
    brings = f"{stored['moment']} {entrances_in_words(*release)}" if release else ""
    return ReachedView(in_order(found), rules, certificates, brings)


def owners_of(connection: Connection[Any], wanted: Iterable[Entrance], deployment: str) -> dict[Entrance, str]:
    """The entrances of `wanted` that another deployment than this one has, each with its name."""
    keys = {(entrance.kind.value, entrance.value): entrance for entrance in wanted}
    rows = connection.execute(_OWNERS, _WANTED.arrays(keys, deployment=deployment)).fetchall()
    return {keys[kind, value]: name for kind, value, name in rows}
