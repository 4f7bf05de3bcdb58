"""Measures of the whole fleet: gauges, each with the query that reads it."""

from db.fleet.deployments import OF_DEPLOYMENTS
from db.fleet.measure import MOST_NAMED, Measure
from db.locking.statuses import ACTIVE, IS_LIVE, PRESENT, RUNNING, words
from domain.cycle.late import LATE
from domain.model.states import Lifecycle, RouteStatus

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
        f"How long the certificates that callers see are good; the {MOST_NAMED} deployments whose end first are named",
        ("deployment",),
        f"""
        SELECT d.name, min(extract(epoch FROM c.not_after - clock_timestamp()))::float8 AS seconds
          FROM certificates c JOIN deployments d ON d.id = c.deployment_id
         WHERE c.not_after IS NOT NULL AND c.is_wanted AND d.lifecycle <> '{Lifecycle.DESTROYED}'
         GROUP BY d.name ORDER BY seconds LIMIT {MOST_NAMED}
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
