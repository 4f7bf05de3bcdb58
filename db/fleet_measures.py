"""The whole fleet in numbers, as Prometheus reads them, in one snapshot of Postgres. No lock is taken."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from psycopg import Connection

from db.locking.statuses import ACTIVE, IS_LIVE, PRESENT, RUNNING, words
from domain.model.picture import LATE
from domain.model.states import Lifecycle, RouteStatus
from domain.traffic.request_counts import MOST_NAMED, Requests

MOST_SHOWN = 100
"""Deployments that one measure names: those in the most trouble. More names would not tell more."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A gauge: its name and help, its labels, and a query whose columns are the labels and then the value."""

    name: str
    help: str
    labels: tuple[str, ...]
    query: str


_LIFECYCLES = words(lifecycle for lifecycle in Lifecycle if lifecycle is not Lifecycle.DESTROYED)
_ILL = f"r.status IN ({words([RouteStatus.UNHEALTHY, RouteStatus.DEGRADED, RouteStatus.FAILED])})"

# one that is scaled from none is down only when nothing of it starts, or what starts fails
_LOST = f"""
    (EXISTS (SELECT FROM routes r WHERE r.deployment_id = d.id AND {_ILL}
                AND r.status_changed_at > clock_timestamp() - interval '10 minutes')
     OR d.failed_starts > 0
     OR NOT EXISTS (SELECT FROM routes r WHERE r.deployment_id = d.id AND r.status = 'provisioning'))
"""

OF_DEPLOYMENTS = (
    Measure(
        "rollway_deployments",
        "Deployments that are not destroyed, by where they are in their life",
        ("lifecycle",),
        f"""
        SELECT known.lifecycle, count(d.id) FROM unnest(ARRAY[{_LIFECYCLES}]) AS known (lifecycle)
          LEFT JOIN deployments d ON d.lifecycle = known.lifecycle GROUP BY known.lifecycle
        """,
    ),
    Measure(
        "rollway_deployment_degraded",
        f"1 for each deployment that scaling gave up on for now; {MOST_SHOWN} are named at most",
        ("deployment",),
        f"SELECT name, 1 FROM deployments WHERE degraded_reason IS NOT NULL ORDER BY name LIMIT {MOST_SHOWN}",
    ),
    Measure(
        "rollway_deployments_degraded",
        "Deployments that scaling gave up on for now",
        (),
        "SELECT count(*) FROM deployments WHERE degraded_reason IS NOT NULL",
    ),
    Measure(
        "rollway_deployment_replicas_missing",
        "Replicas wanted less those that serve, for each deployment where fewer serve than are wanted;"
        f" {MOST_SHOWN} are named at most",
        ("deployment",),
        f"""
        SELECT d.name, d.desired_replicas - coalesce(serving.count, 0) AS missing
          FROM deployments d
          LEFT JOIN (SELECT deployment_id, count(*)::int AS count FROM routes
                      WHERE {RUNNING} AND status = 'healthy' AND traffic_status = 'active'
                      GROUP BY deployment_id) serving ON serving.deployment_id = d.id
         WHERE d.lifecycle IN ({words([Lifecycle.SCALING, Lifecycle.READY, Lifecycle.DEPLOYING])})
           AND coalesce(serving.count, 0) < d.desired_replicas
         ORDER BY missing DESC, d.name LIMIT {MOST_SHOWN}
        """,
    ),
    Measure(
        "rollway_deployment_down",
        "1 for each deployment that served and of which no replica serves though some are wanted, unless a recreate is"
        f" under way or it is in maintenance; {MOST_SHOWN} are named at most",
        ("deployment",),
        f"""
        WITH silent AS MATERIALIZED ( -- first, or the past of every deployment would be looked through
            SELECT * FROM deployments d
             WHERE d.desired_replicas > 0 AND d.maintenance IS NULL
               AND d.lifecycle IN ({words([Lifecycle.SCALING, Lifecycle.READY, Lifecycle.DEPLOYING])})
               AND NOT EXISTS (SELECT FROM routes r WHERE r.deployment_id = d.id AND {RUNNING}
                                  AND r.status = 'healthy' AND r.traffic_status = 'active'))
        SELECT d.name, 1 FROM silent d
         WHERE (SELECT strategy FROM rollouts WHERE id = d.rollout_id) IS DISTINCT FROM 'recreate'
           AND (SELECT true FROM routes r WHERE r.deployment_id = d.id AND r.healthy_at IS NOT NULL LIMIT 1)
           AND {_LOST}
         ORDER BY d.name LIMIT {MOST_SHOWN}
        """,
    ),
)


_LATE_SECONDS = LATE.total_seconds()

_STATUSES = words(status for status in RouteStatus if status.is_active or status is RouteStatus.TERMINATING)


MEASURES = (
    *OF_DEPLOYMENTS,
    Measure(
        "rollway_replicas_wanted",
        "Replicas that all deployments want together",
        (),
        f"""
        SELECT coalesce(sum(desired_replicas), 0)::int FROM deployments
         WHERE lifecycle NOT IN ({words([Lifecycle.DESTROYING, Lifecycle.DESTROYED])})
        """,
    ),
    Measure(
        "rollway_replicas_serving",
        "Replicas that are healthy and in traffic",
        (),
        f"SELECT count(*) FROM routes WHERE {RUNNING} AND status = 'healthy' AND traffic_status = 'active'",
    ),
    Measure(
        "rollway_routes",
        "Routes that are not gone, by status",
        ("status",),
        f"""
        SELECT known.status, coalesce(found.count, 0) FROM unnest(ARRAY[{_STATUSES}]) AS known (status)
          LEFT JOIN (SELECT status, count(*) FROM routes WHERE {PRESENT} GROUP BY status) found
               ON found.status = known.status
        """,
    ),
    Measure(
        "rollway_routes_parked",
        "Routes of an old set that are kept running for a fast rollback",
        (),
        f"SELECT count(*) FROM routes WHERE {ACTIVE} AND parked_until IS NOT NULL",
    ),
    Measure(
        "rollway_rollouts_open",
        "Rollouts under way: forward, back, held (by a freeze, its group or a delay), or waits (for a person)",
        ("state",),
        """
        SELECT known.state, count(o.id) FROM unnest(ARRAY['forward', 'back', 'held', 'waits']) AS known (state)
          LEFT JOIN (SELECT r.id, CASE WHEN d.waits_for IS NOT NULL THEN 'waits'
                                       WHEN r.clock_stopped_at IS NOT NULL THEN 'held'
                                       WHEN r.back_reason IS NOT NULL THEN 'back' ELSE 'forward' END AS state
                       FROM rollouts r JOIN deployments d ON d.id = r.deployment_id
                      WHERE r.ended_at IS NULL) o ON o.state = known.state
         GROUP BY known.state
        """,
    ),
    Measure(
        "rollway_rollout_still_seconds",
        "Since a rollout under way last got further, where it does not wait for a person;"
        f" the {MOST_SHOWN} longest are named",
        ("deployment",),
        f"""
        SELECT d.name, greatest(0, extract(epoch FROM clock_timestamp() - o.last_progress_at))::float8 AS still
          FROM rollouts o JOIN deployments d ON d.id = o.deployment_id
         WHERE o.ended_at IS NULL AND o.clock_stopped_at IS NULL
         ORDER BY still DESC LIMIT {MOST_SHOWN}
        """,
    ),
    Measure(
        "rollway_marks",
        f"Deployments that are due to be looked at, and those that have been due for more than {_LATE_SECONDS:g} s",
        ("state",),
        f"""
        SELECT known.state, count(d.id) FROM (VALUES ('due', 0), ('overdue', {_LATE_SECONDS:g})) AS known (state, since)
          LEFT JOIN deployments d ON d.due_at <= clock_timestamp() - make_interval(secs => known.since)
         GROUP BY known.state
        """,
    ),
    Measure(
        "rollway_drain_oldest_seconds",
        "For how long the replica that leaves has been leaving that began first",
        (),
        f"""
        SELECT coalesce(max(extract(epoch FROM clock_timestamp() - drain_started_at)), 0)::float8
          FROM routes WHERE {PRESENT} AND status = 'terminating'
        """,
    ),
    Measure(
        "rollway_host_up",
        "Whether workers of a host show signs of life, and Redis answers them; not of hosts that a person drained",
        ("host",),
        "SELECT name, (down_since IS NULL AND deaf_since IS NULL)::int FROM hosts WHERE drained_at IS NULL",
    ),
    Measure(
        "rollway_host_silence_seconds",
        "Since workers of a host last showed a sign of life",
        ("host",),
        "SELECT name, greatest(0, extract(epoch FROM clock_timestamp() - last_seen_at))::float8 FROM hosts",
    ),
    Measure(
        "rollway_host_clock_offset_seconds",
        "By how much the clock of a host is ahead of that of Postgres, at least",
        ("host",),
        "SELECT name, clock_offset_seconds FROM hosts",
    ),
    Measure(
        "rollway_certificate_seconds",
        f"How long the certificates that callers see are good; the {MOST_SHOWN} deployments whose end first are named",
        ("deployment",),
        f"""
        SELECT d.name, min(extract(epoch FROM c.not_after - clock_timestamp()))::float8 AS seconds
          FROM certificates c JOIN deployments d ON d.id = c.deployment_id
         WHERE c.not_after IS NOT NULL AND c.is_wanted AND d.lifecycle <> '{Lifecycle.DESTROYED}'
         GROUP BY d.name ORDER BY seconds LIMIT {MOST_SHOWN}
        """,
    ),
    Measure(
        "rollway_proxies",
        "Proxies, by kind, that have a stream or poll (live), or were silent for too long",
        ("kind", "state"),
        f"""
        SELECT kind, CASE WHEN coalesce({IS_LIVE}, false) THEN 'live' ELSE 'silent' END AS state, count(*)
          FROM proxies p GROUP BY 1, 2
        """,
    ),
    Measure(
        "rollway_events",
        "Events of transitions that a subscription is still to be told, or that were given up",
        ("subscription", "state"),
        """
        SELECT s.name, known.state, count(o.position)
          FROM subscriptions s CROSS JOIN (VALUES ('waiting', true), ('given_up', false)) AS known (state, waits)
          LEFT JOIN outbox o ON o.subscription = s.name AND (o.given_up_at IS NULL) = known.waits
         GROUP BY s.name, known.state
        """,
    ),
    Measure(
        "rollway_database_bytes",
        "Size of the database",
        (),
        "SELECT pg_database_size(current_database())",
    ),
    Measure(
        "rollway_table_bytes",
        "Size of each table with its indexes",
        ("table",),
        """
        SELECT relname, pg_total_relation_size(oid) FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
        """,
    ),
)


_ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_UNCOMPILED = "SET LOCAL jit = off"
"""Postgres expects that many deployments are silent, and would compile for longer than such a query takes."""

_ENDED = """
    SELECT c.strategy, c.outcome, c.bucket, sum(c.count)::int8 AS count, sum(c.seconds) AS seconds
      FROM (SELECT * FROM rollout_counts
            UNION ALL
            SELECT new.* FROM rollouts o, LATERAL count_ended(o) new
             WHERE o.outcome IS NOT NULL AND NOT o.is_sealed) c
     GROUP BY c.strategy, c.outcome, c.bucket ORDER BY c.strategy, c.outcome, c.bucket
"""
"""Rollouts that are counted, and those that ended since and have no receipt yet."""

_QUEUES = "SELECT DISTINCT queue FROM subscriptions WHERE queue IS NOT NULL ORDER BY 1"

_BOUNDS = "SELECT rollout_seconds()"

_MOST_SUMS = 3 * MOST_NAMED
"""Each deployment has some revisions that answered within the hour."""
_REQUESTS = f"""
    SELECT s.deployment, coalesce(r.name, ''), s.fine, s.redirected, s.refused, s.failed, s.waited
      FROM request_sums s LEFT JOIN revisions r ON r.id = s.revision_id
     ORDER BY s.at DESC, s.deployment, s.revision_id LIMIT {_MOST_SUMS}
"""


@dataclass(frozen=True, slots=True)
class EndedRollouts:
    """Rollouts of one strategy that ended in one way. `buckets`: how many took as long as which bound, not added up."""

    strategy: str
    outcome: str
    seconds: float
    buckets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FleetView:
    """Samples by measure, each with its labels and value; the rollouts that have ended; their bounds in seconds.

    `requests`: what callers got, by deployment and revision, as far as they are named. `told_queues`: those in which
    subscribers wait for events.
    """

    samples: Mapping[str, Sequence[tuple[tuple[str, ...], float]]]
    ended: Sequence[EndedRollouts]
    bounds: Sequence[float]
    requests: Mapping[tuple[str, str], Requests]
    told_queues: Sequence[str]


def read_fleet(connection: Connection[Any]) -> FleetView:
    """Measure the whole fleet. The connection must be at the beginning of a transaction."""
    cursor = connection.cursor()
    cursor.execute(_ONE_SNAPSHOT)
    cursor.execute(_UNCOMPILED)
    samples = {
        measure.name: [(tuple(labels), float(value)) for *labels, value in cursor.execute(measure.query).fetchall()]
        for measure in MEASURES
    }
    ((bounds,),) = cursor.execute(_BOUNDS).fetchall()
    ended = _by_way(cursor.execute(_ENDED).fetchall(), len(bounds) + 1)
    requests = {(name, of): Requests.from_row(*its) for name, of, *its in cursor.execute(_REQUESTS).fetchall()}
    queues = [queue for (queue,) in cursor.execute(_QUEUES).fetchall()]
    return FleetView(samples, ended, tuple(bounds), requests, queues)


def _by_way(rows: Iterable[tuple[str, str, int, int, float]], size: int) -> list[EndedRollouts]:
    """`size`: how many buckets there are."""
    counts = []
    for (strategy, outcome), same_way in groupby(rows, itemgetter(0, 1)):
        buckets, seconds = [0] * size, 0.0
        for *_, bucket, count, took in same_way:
            buckets[bucket - 1] = count
            seconds += took
        counts.append(EndedRollouts(strategy, outcome, seconds, tuple(buckets)))
    return counts
