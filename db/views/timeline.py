"""Reads for people: the past of a deployment, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from db.locking.upstream import OF_DEPLOYMENT, WIRE
from db.views.deployment_view import DeploymentView
from db.views.deployment_views import deployment_by_id
from db.views.fleet_views import SignsOfLife, signs_of_life
from db.views.rollout_views import RolloutView, rollouts_by_id
from db.views.route_views import ONLY_FAILED, FailingStart, failing_start
from domain.cycle.step_deltas import Chain
from domain.model.preparation import Preparation
from domain.revisions.secret_refs import differ_unseen, masked

REVISIONS = f"""
    SELECT v.id, v.name, v.spec, v.created_at, {ONLY_FAILED} AS only_failed, {WIRE} AS wire,
           {WIRE} <> {OF_DEPLOYMENT} AS speaks_otherwise
      FROM revisions v JOIN deployments d ON d.id = v.deployment_id
"""
_NEWEST = f"{REVISIONS} WHERE v.deployment_id = %s ORDER BY v.id DESC LIMIT %s"
_OF_NAME = f"{REVISIONS} WHERE v.deployment_id = %s AND v.name = %s"

# with the steps that the first one builds on
_STEPS = """
    SELECT step_no, phase, at, verdict, inputs, decision
      FROM rollout_steps
     WHERE rollout_id = %(rollout_id)s
       AND step_no >= coalesce((SELECT whole_step FROM rollout_steps
                                 WHERE rollout_id = %(rollout_id)s AND step_no > %(after)s ORDER BY step_no LIMIT 1),
                               %(after)s + 1)
     ORDER BY step_no
"""


@dataclass(frozen=True, slots=True)
class RevisionAhead:
    """The hosts for a revision, if it were activated now.

    `room`: the number of replicas that find devices; None: they need none. `shortage`: a clause about devices in use.
    `turns`: the replicas that leave for its replicas, in their order. `frees_at`: when the devices of a replica that
    has gone are free. `refusal`: why its rollout could never end. `preparations`: those of hosts; None: it has none.
    """

    room: int | None = None
    shortage: str = ""
    turns: tuple[UUID, ...] = ()
    frees_at: datetime | None = None
    refusal: str = ""
    preparations: tuple[Preparation, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionView:
    """A revision with its spec as JSON. `only_failed`: its replicas have failed, and none has ever come up.

    `wire`: the `protocol` and `upstream_tls` of its replicas; `speaks_otherwise`: whether running replicas have others.
    `ahead`: its hosts, for a revision that is shown by itself and that needs devices or prepares hosts.
    """

    id: UUID
    name: str
    spec: dict[str, Any]
    created_at: datetime
    only_failed: bool = False
    wire: dict[str, Any] = field(default_factory=dict)
    speaks_otherwise: bool = False
    ahead: RevisionAhead | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """A line of the timeline, made from `attempts` records of the same kind in a row."""

    phase: str
    result: str
    error_code: str | None
    target: str
    actor: str
    message: str
    attempts: int
    rollout_id: UUID | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class StepView:
    """A cycle of a rollout that changed something: the inputs of its decision, and the decision."""

    step_no: int
    phase: str
    at: datetime
    verdict: str
    inputs: Mapping[str, Any]
    decision: dict[str, Any]


def revisions_of(connection: Connection[Any], deployment_id: UUID, limit: int) -> list[RevisionView]:
    """The newest revisions of a deployment, the newest first, with the values of their variables masked."""
    cursor = connection.cursor(row_factory=class_row(RevisionView))
    views = cursor.execute(_NEWEST, (deployment_id, limit)).fetchall()
    return [shown(revision) for revision in views]


def shown(revision: RevisionView) -> RevisionView:
    """The step for people, with the values of its variables masked."""
    return replace(revision, spec=masked(revision.spec))


def revision_named(connection: Connection[Any], deployment_id: UUID, name: str) -> RevisionView | None:
    """The revision of that name with unmasked values: to be compared, and shown to nobody."""
    return connection.cursor(row_factory=class_row(RevisionView)).execute(_OF_NAME, (deployment_id, name)).fetchone()


def revision_shown(connection: Connection[Any], deployment_id: UUID, name: str) -> RevisionView | None:
    """The revision of that name, the values of its variables masked."""
    revision = revision_named(connection, deployment_id, name)
    return None if revision is None else shown(revision)


def hidden_differences(connection: Connection[Any], deployment_id: UUID, before: str, after: str) -> list[str]:
    """The variables whose values differ between two revisions and are masked in both."""
    revisions = [revision_named(connection, deployment_id, name) for name in (before, after)]
    return differ_unseen(*(revision.spec if revision else {} for revision in revisions))


def steps_of(connection: Connection[Any], rollout_id: UUID, after: int = 0) -> list[StepView]:
    """The cycles of a rollout with numbers above `after`, in order.

    A cycle is left out if a step that it builds on is missing; the audit reports that.
    """
    chain, steps = Chain(), []
    rows = connection.execute(_STEPS, {"rollout_id": rollout_id, "after": after})
    for number, phase, at, verdict, recorded, decision in rows:
        inputs = chain.whole(rollout_id, number, recorded)
        if inputs is not None and number > after:
            steps.append(StepView(number, phase, at, verdict, inputs, decision))
    return steps


@dataclass(frozen=True, slots=True)
class Progress:
    """A deployment, the followed rollout with its new steps, and the failing starts, from one snapshot."""

    deployment: DeploymentView
    signs: SignsOfLife
    rollout: RolloutView | None = None
    steps: tuple[StepView, ...] = ()
    failing: FailingStart | None = None


def progress_of(connection: Connection[Any], deployment_id: UUID, rollout_id: UUID | None, after_step: int) -> Progress:
    """The deployment, the rollout of that id, and its steps with numbers above `after_step`."""
    deployment, signs = deployment_by_id(connection, deployment_id), signs_of_life(connection)
    failing = failing_start(connection, deployment_id, deployment.failed_starts)
    if rollout_id is None:
        return Progress(deployment, signs, failing=failing)
    rollout = rollouts_by_id(connection, [rollout_id])[rollout_id]
    return Progress(deployment, signs, rollout, tuple(steps_of(connection, rollout_id, after_step)), failing)
