"""Rows straight into the frozen values that decisions are made from."""

import json
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

from psycopg.rows import TupleRow

from db.cycle.rules import NO_RULES, Ruled
from db.schema.statuses import ACTIVE, PRESENT
from domain.model import (
    Deployment,
    DeploymentLifecycleStatus,
    DeploymentSubStep,
    Lifecycle,
    Rollout,
    Route,
    RouteStatus,
    StartFailures,
    TrafficStatus,
)
from domain.policy import DeploymentPolicy
from domain.strategies import stored_policy
from domain.strategies.base import RouteCounts

LIFECYCLE_STATUSES = {
    (lifecycle.value, sub_step.value if sub_step else None): DeploymentLifecycleStatus(lifecycle, sub_step)
    for lifecycle in Lifecycle
    for sub_step in (None, *DeploymentSubStep)
}
_HEALTH = {one.value: one for one in RouteStatus}
_TRAFFIC = {one.value: one for one in TrafficStatus}

DEPLOYMENTS = """
    SELECT d.id, d.rollout_id, d.history_id, d.history_key, d.name, d.desired_replicas, d.lifecycle, d.sub_step,
           d.current_revision_id, d.deploying_revision_id, d.version, d.phase_started_at, d.phase_attempts, d.paused_at,
           d.degraded_reason, d.retry_at, d.last_autoscaled_at, d.failed_revision_id, d.failed_starts, d.last_failed_at
      FROM deployments d
"""

ROUTES = f"""
    SELECT deployment_id, id, revision_id, status, traffic_status, created_at, status_changed_at, parked_until
      FROM routes
     WHERE deployment_id = ANY(%(ids)b) AND {PRESENT}
     ORDER BY id
"""

ROLLOUTS = f"""
    SELECT o.id, o.from_revision_id, o.to_revision_id, o.strategy, o.spec::text, o.limits::text, o.started_at,
           o.last_progress_at, o.deadline, o.failed_routes, o.steps, o.clock_stopped_at, o.promote_requested,
           o.desired_at_start, o.desired_with_revision, counted.starting, counted.healthy, counted.idle
      FROM rollouts o,
           LATERAL (SELECT count(*) FILTER (WHERE r.status = 'provisioning') AS starting,
                           count(*) FILTER (WHERE r.status = 'healthy') AS healthy,
                           count(*) FILTER (WHERE r.traffic_status = 'inactive') AS idle
                      FROM routes r
                     WHERE r.deployment_id = o.deployment_id AND r.revision_id = o.to_revision_id
                       AND r.{ACTIVE}) counted
     WHERE o.id = ANY(%(ids)b)
"""


def deployment_of(
    row: TupleRow, rollout: Rollout | None = None, routes: Iterable[Route] = (), ruled: Ruled = NO_RULES
) -> Deployment:
    """From a row of DEPLOYMENTS."""
    failing, failed_starts, last_failed_at = row[17:]
    return Deployment(
        id=row[0],
        name=row[4],
        desired_replicas=row[5],
        status=LIFECYCLE_STATUSES[row[6], row[7]],
        current_revision_id=row[8],
        deploying_revision_id=row[9],
        version=row[10],
        phase_started_at=row[11],
        phase_attempts=row[12],
        paused_at=row[13],
        rollout=rollout,
        start_failures=StartFailures(failing, failed_starts, last_failed_at) if failed_starts else None,
        degraded_reason=row[14],
        retry_at=row[15],
        routes=tuple(routes),
        rules=ruled.rules,
        metrics=ruled.metrics,
        last_autoscaled_at=row[16],
    )


def routes_of(rows: Iterable[TupleRow]) -> dict[int, list[Route]]:
    """From rows of ROUTES, by the number of their deployment's id: numbers are found faster than ids."""
    routes: dict[int, list[Route]] = defaultdict(list)
    for deployment_id, route_id, revision_id, status, traffic, created_at, changed_at, parked_until in rows:
        routes[deployment_id.int].append(
            Route(route_id, revision_id, _HEALTH[status], _TRAFFIC[traffic], created_at, changed_at, parked_until)
        )
    return routes


def rollout_of(row: TupleRow) -> tuple[Rollout, RouteCounts]:
    """From a row of ROLLOUTS."""
    rollout = Rollout(
        id=row[0],
        from_revision_id=row[1],
        to_revision_id=row[2],
        policy=_policy(row[3], row[4], row[5]),
        started_at=row[6],
        last_progress_at=row[7],
        deadline=row[8],
        failed_routes=row[9],
        steps=row[10],
        clock_stopped_at=row[11],
        promote_requested=row[12],
        desired_at_start=row[13],
        desired_with_revision=row[14],
    )
    return rollout, RouteCounts(row[15], row[16], row[17])


@lru_cache(maxsize=1024)
def _policy(strategy: str, spec: str, limits: str) -> DeploymentPolicy:
    """Most rollouts of a fleet share a few policies; parsing each anew would cost more than the decision."""
    return stored_policy({"strategy": strategy, "spec": json.loads(spec), "limits": json.loads(limits)})
