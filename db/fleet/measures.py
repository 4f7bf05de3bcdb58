"""Measures of the whole fleet: gauges, each with the query that reads it."""

from dataclasses import dataclass

from db.locking.statuses import ACTIVE, IS_LIVE, PRESENT, RUNNING, words
from domain.cycle.late import LATE
from domain.model.states import Lifecycle, RouteStatus

MOST_NAMED = 100
"""Deployments that one measure names: those in the most trouble. More names would not tell more."""
_LATE_SECONDS = LATE.total_seconds()

_LIFECYCLES = words(lifecycle for lifecycle in Lifecycle if lifecycle is not Lifecycle.DESTROYED)
_STATUSES = words(status for status in RouteStatus if status.is_active or status is RouteStatus.TERMINATING)


@dataclass(frozen=True, slots=True)
class Measure:
    """A gauge: its name and help, its labels, and a query whose columns are the labels and then the value."""

    name: str
    help: str
    labels: tuple[str, ...]
    query: str


MEASURES = (
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
        f"1 for each deployment that scaling gave up on for now; {MOST_NAMED} are named at most",
        ("deployment",),
        f"SELECT name, 1 FROM deployments WHERE degraded_reason IS NOT NULL ORDER BY name LIMIT {MOST_NAMED}",
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
        f" {MOST_NAMED} are named at most",
        ("deployment",),
        f"""
        SELECT d.name, d.desired_replicas - coalesce(serving.count, 0) AS missing
          FROM deployments d
          LEFT JOIN (SELECT deployment_id, count(*)::int AS count FROM routes
                      WHERE {RUNNING} AND status = 'healthy' AND traffic_status = 'active'
                      GROUP BY deployment_id) serving ON serving.deployment_id = d.id
         WHERE d.lifecycle IN ({words([Lifecycle.SCALING, Lifecycle.READY, Lifecycle.DEPLOYING])})
           AND coalesce(serving.count, 0) < d.desired_replicas
         ORDER BY missing DESC, d.name LIMIT {MOST_NAMED}
        """,
    ),
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
        "Routes of an old set that are kept running for a fast way back",
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
        f" the {MOST_NAMED} longest are named",
        ("deployment",),
        f"""
        SELECT d.name, greatest(0, extract(epoch FROM clock_timestamp() - o.last_progress_at))::float8 AS still
          FROM rollouts o JOIN deployments d ON d.id = o.deployment_id
         WHERE o.ended_at IS NULL AND o.clock_stopped_at IS NULL
         ORDER BY still DESC LIMIT {MOST_NAMED}
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
        "Whether workers of a host show signs of life",
        ("host",),
        "SELECT name, (down_since IS NULL)::int FROM hosts",
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
