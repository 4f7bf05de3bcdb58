"""The read for why a deployment waits: it as decisions see it, and what there is around it, from one snapshot."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from psycopg import Connection

from db.freezes import gates_of
from db.locking.statuses import IS_LACKED, lifecycle_status
from db.views.ahead.foresight import foreseeable
from db.views.deployment_view import DeploymentView
from db.views.deployments import deployment_named
from db.views.fleet.signs import SignsOfLife, signs_of_life
from db.views.routes import failing_start
from domain.foresight.plan.around import Around
from domain.model.deployment import Deployment, Hold
from domain.steering.holds import OpenRollout

_HOSTS = "SELECT name, down_since IS NOT NULL AS is_down FROM hosts"

_LACKING = f"""
    SELECT s.host, string_agg(DISTINCT s.reference || ': ' || s.fault, '; ')
      FROM revisions v JOIN host_secrets s ON {IS_LACKED} WHERE v.id = %s GROUP BY s.host
"""


_PAUSED = """
    SELECT actor, message FROM deployment_history
     WHERE deployment_id = %s AND result = 'asked' AND phase = 'pause' ORDER BY updated_at DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class WaitingView:
    """The arguments of `domain.foresight.why`, at the database's time `now`; who does the work was heard of then."""

    view: DeploymentView
    deployment: Deployment
    around: Around
    signs: SignsOfLife
    now: datetime


def waiting(connection: Connection[Any], name: str) -> WaitingView:
    """The deployment of that name. Raises DeploymentNotFoundError."""
    view = deployment_named(connection, name)
    known = foreseeable(connection, view)
    hosts = dict(connection.execute(_HOSTS).fetchall())
    is_any_up = not all(hosts.values())
    around = Around(
        hosts={route.id: route.host for route in view.routes if route.host is not None or not is_any_up},
        reasons={route.id: route.reason for route in view.routes},
        down=frozenset(host for host, is_down in hosts.items() if is_down),
        lacking=_lacking(connection, view),
        learned=known.learned,
        due_at=view.due_at,
        said=view.reason,
        failure=_failure(connection, view, known.deployment),
        unproven=view.unproven,
        back=view.rollout.back_reason or "" if view.rollout else "",
        paused=_paused(connection, view),
    )
    deployment = replace(known.deployment, hold=_hold(connection, view))
    return WaitingView(view, deployment, around, signs_of_life(connection), view.now)


def _failure(connection: Connection[Any], view: DeploymentView, deployment: Deployment) -> str:
    """Say why the last start failed of the revision that is to come up; what another one did is over."""
    coming = view.deploying_revision_id if deployment.status.goes_forward else view.current_revision_id
    failures = deployment.start_failures
    if failures is None or failures.revision_id != coming:
        return ""
    failing = failing_start(connection, view.id, view.failed_starts)
    return failing.cause if failing else ""


def _paused(connection: Connection[Any], view: DeploymentView) -> str:
    """Say who paused its rollout."""
    asked = connection.execute(_PAUSED, (view.id,)).fetchone() if view.paused_at else None
    return asked[1].replace("paused", f"paused by {asked[0]}", 1) if asked else ""


def _hold(connection: Connection[Any], view: DeploymentView) -> Hold | None:
    """Say why its rollout may not go forward, as the next cycle will find it."""
    rollout = view.rollout
    if rollout is None or not lifecycle_status(view.lifecycle, view.sub_step).goes_forward:
        return None
    (through,) = connection.execute("SELECT through_freeze FROM rollouts WHERE id = %s", (rollout.id,)).fetchall()
    seen = OpenRollout(
        rollout.id,
        view.name,
        rollout.started_at,
        has_moved=rollout.steps > 0,
        is_exit=rollout.is_undo,
        through_freeze=through[0],
    )
    return gates_of(connection, [view.name])[view.name].hold(seen, view.now)


def _lacking(connection: Connection[Any], view: DeploymentView) -> dict[str, str]:
    """By host, what it lacks of the secrets of the revision that should run."""
    target = view.deploying_revision_id or view.current_revision_id
    return dict(connection.execute(_LACKING, (target,)).fetchall())
