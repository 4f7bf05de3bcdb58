"""Measures of deployments: where they are in their lives, and which of them are in trouble."""

from db.fleet.measure import MOST_NAMED, Measure
from db.locking.statuses import RUNNING, words
from domain.model.states import Lifecycle, RouteStatus

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
        "rollway_deployment_down",
        "1 for each deployment that served and of which no replica serves though some are wanted, unless a recreate is"
        f" under way or it is in maintenance; {MOST_NAMED} are named at most",
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
         ORDER BY d.name LIMIT {MOST_NAMED}
        """,
    ),
)
