"""The reads for plans and replays: a deployment as decisions see it, or as it would be; what past replicas teach."""

from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple, Self
from uuid import UUID

from psycopg import Connection

from db.evidence import evidence_of
from db.failures import start_failures
from db.locking.rows import named_row
from db.views.deployment_view import DeploymentView
from db.views.deployments import deployment_named
from db.views.rollouts import RolloutView, rollouts_by_id
from db.views.timeline import RevisionView
from domain.cycle.rollout import is_judged, with_evidence
from domain.foresight.learned import Learned
from domain.foresight.plan.subject import Planned, Subject, after_activation, says_when_healthy
from domain.model.canary import Sums
from domain.model.deployment import Deployment, Route, StartFailures
from domain.steering.activation import ActivationRequest
from domain.strategies import stored_policy
from domain.traffic.wire import known_wire
from domain.words.errors import RevisionNotFoundError, RolloutNotFoundError

_REMEMBERED = 300
"""So many of the newest replicas teach: what was long ago says little of today's revisions and machines."""

_REPLICAS = """
    SELECT array_agg(extract(epoch FROM healthy_at - created_at)::float8 ORDER BY created_at)
             FILTER (WHERE healthy_at IS NOT NULL) AS starts,
           array_agg(extract(epoch FROM stopped_at - drain_started_at)::float8 ORDER BY created_at)
             FILTER (WHERE status = 'terminated' AND stopped_at >= drain_started_at) AS stops,
           count(*) FILTER (WHERE status = 'failed' AND healthy_at IS NULL AND came_up) AS failed,
           count(DISTINCT revision_id) FILTER (WHERE status = 'failed' AND NOT came_up) AS never_up,
           count(DISTINCT revision_id) AS revisions
      FROM (SELECT *, bool_or(healthy_at IS NOT NULL) OVER (PARTITION BY revision_id) AS came_up
              FROM (SELECT * FROM routes WHERE deployment_id = %s AND created_at < %s
                     ORDER BY created_at DESC LIMIT %s) newest) seen
"""

_WAKES = """
    SELECT extract(epoch FROM s.at - o.started_at)::float8
      FROM (SELECT * FROM rollouts WHERE deployment_id = %s AND started_at < %s ORDER BY started_at DESC LIMIT %s) o
      JOIN rollout_steps s ON s.rollout_id = o.id AND s.step_no = 1
     WHERE o.outcome IS NOT NULL ORDER BY o.started_at
"""
"""From the command to the first decision: nothing else comes between the two."""

_FAILURES = """
    SELECT failed_revision_id, failed_starts, last_failed_at, came_up_at, short_lives FROM deployments WHERE id = %s
"""


class _Replicas(NamedTuple):
    starts: list[float] | None
    stops: list[float] | None
    failed: int
    never_up: int
    revisions: int


@dataclass(frozen=True, slots=True)
class Foreseeable:
    """A deployment as decisions see it at the database's time `now`, and what its past replicas teach."""

    deployment: Deployment
    learned: Learned
    now: datetime

    @classmethod
    def of(cls, view: DeploymentView, past: "LearnedView") -> Self:
        """The deployment of the view, with its failing starts."""
        names = [field.name for field in fields(Route)]
        routes = tuple(Route(**{name: getattr(route, name) for name in names}) for route in view.routes)
        rollout = view.snapshot.rollout
        if rollout is not None:
            rollout = with_evidence(rollout, past.evidence)
        deployment = replace(view.snapshot, start_failures=past.start_failures, routes=routes, rollout=rollout)
        return cls(deployment, past.learned, view.now)


@dataclass(frozen=True, slots=True)
class LearnedView:
    """The lessons of a deployment's replicas and its failing starts, and what proxies told of its canary."""

    learned: Learned
    start_failures: StartFailures | None
    evidence: Sums | None = None


def learned_of(connection: Connection[Any], deployment_id: UUID, before: datetime | None = None) -> Learned:
    """Read what the deployment's newest replicas and rollouts teach, or those that were there `before`."""
    asked = (deployment_id, before or "infinity", _REMEMBERED)
    (replicas,) = connection.cursor(row_factory=named_row(_Replicas)).execute(_REPLICAS, asked).fetchall()
    wakes = connection.execute(_WAKES, asked).fetchall()
    return Learned(
        starts=tuple(replicas.starts or ()),
        stops=tuple(replicas.stops or ()),
        wakes=tuple(max(0.0, wake) for (wake,) in wakes),
        failed_starts=replicas.failed,
        never_up=replicas.never_up,
        revisions=replicas.revisions,
    )


def foreseeable(connection: Connection[Any], view: DeploymentView) -> Foreseeable:
    """The deployment of the view, as a plan of it begins."""
    return Foreseeable.of(view, learned_shown(connection, view))


def learned_shown(connection: Connection[Any], view: DeploymentView) -> LearnedView:
    """Read what is learned of the deployment of the view; of its canary as the next look will find it."""
    (failures,) = connection.execute(_FAILURES, (view.id,)).fetchall()
    rollout = view.snapshot.rollout
    judged = [] if rollout is None or not is_judged(rollout) else [rollout.id]
    evidence = next(iter((evidence_of(connection, judged) if judged else {}).values()), None)
    return LearnedView(learned_of(connection, view.id), start_failures(*failures), evidence)


def last_rollout_of(connection: Connection[Any], name: str) -> RolloutView:
    """The newest rollout of the deployment. Raises DeploymentNotFoundError and RolloutNotFoundError."""
    view = deployment_named(connection, name)
    query = "SELECT id FROM rollouts WHERE deployment_id = %s ORDER BY started_at DESC LIMIT 1"
    newest = connection.execute(query, (view.id,)).fetchone()
    if newest is None:
        raise RolloutNotFoundError.of_deployment(name)
    return rollouts_by_id(connection, newest)[newest[0]]


def planned_activation(view: DeploymentView, known: Foreseeable, found: RevisionView | None, name: str) -> Planned:
    """The deployment with the revision of that name as it was found. Raises RevisionNotFoundError where it was not."""
    if found is None:
        message = f"{view.name} has no revision {name}; 'rollway status {view.name}' lists them"
        raise RevisionNotFoundError(message, deployment=view.name, revision=name)
    policy = stored_policy(view.policy) if view.policy else None
    request = ActivationRequest(found.id, name, view.deploying_revision, policy)
    speaks = str(known_wire(found.wire)) if found.speaks_otherwise else ""
    activated = after_activation(known.deployment, request, known.now)
    subject = Subject(activated, _is_checked(found), speaks=speaks)
    return Planned(subject, known.learned, known.now)


def planned_rest(known: Foreseeable, runs: RevisionView | None) -> Planned:
    """The deployment as it stands. `runs`: the revision that it goes to, or stands at."""
    return Planned(Subject(known.deployment, _is_checked(runs)), known.learned, known.now)


def _is_checked(revision: RevisionView | None) -> bool:
    """Whether the revision says when it is healthy; where there is none, nothing is to be checked."""
    return revision is None or says_when_healthy(revision.spec)
