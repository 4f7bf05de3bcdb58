"""Foretells the effects of applying documents: each deployment as its document's commands would leave it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from psycopg import Connection

from db.commands.apply.difference import stored_of
from db.connection.transactions import database_now
from db.views.deployment_views import existing_deployments
from db.views.planning_views import foreseeable, hosts_ahead
from db.views.unplaced import labels_by_host
from domain.commands.apply.document import Apply, Document
from domain.commands.apply.expansion import Stored, notes, parts
from domain.commands.base import Command
from domain.commands.deployment_commands import Scale
from domain.commands.rollout_commands import ActivateRevision, Retry
from domain.model.deployment import Deployment
from domain.model.states import DeploymentLifecycleStatus, Lifecycle
from domain.planning.plan_input import Planned, Subject, after_activation, says_when_healthy
from domain.planning.replica_timings import Timings
from domain.steering.activation import ActivationRequest
from domain.steering.verbs import scale, try_now

_PENDING = DeploymentLifecycleStatus(Lifecycle.PENDING)


@dataclass(frozen=True, slots=True)
class AppliedAhead:
    """A deployment as applying its document would leave it; revisions by name, empty where there is none.

    `would`: the changes, in sentences. `notes`: parts of the document that its author may not have meant.
    """

    deployment: str
    from_revision: str
    to_revision: str
    would: tuple[str, ...]
    planned: Planned
    notes: tuple[str, ...]


def applied_ahead(connection: Connection[Any], apply: Apply) -> list[AppliedAhead]:
    """Preview each document by itself. Raises what `domain.commands.apply.expansion.parts` raises."""
    return [_applied_ahead(connection, apply, document) for document in apply.documents]


def _applied_ahead(connection: Connection[Any], apply: Apply, document: Document) -> AppliedAhead:
    state = stored_of(connection, document)
    view = next(iter(existing_deployments(connection, [document.deployment])), None)
    foreseeable_now = foreseeable(connection, view) if view else None
    now = foreseeable_now.now if foreseeable_now else database_now(connection)
    after = foreseeable_now.deployment if foreseeable_now else _created(document, now)
    found_parts = parts(document, state, apply)
    for part in found_parts:
        after = _after(connection, after, part.command, document, state, now)
    runs = (state.deployment.current if state.deployment else None) or ""
    revision = document.revision_name or runs
    is_checked = document.revision is None or says_when_healthy(document.revision.spec.model_dump())
    planned = Planned(Subject(after, is_checked), foreseeable_now.learned if foreseeable_now else Timings(), now)
    would = tuple(part.sentence for part in found_parts)
    doubts = notes(document, state, apply)
    return AppliedAhead(document.deployment, runs if runs != revision else "", revision, would, planned, doubts)


def _created(document: Document, now: datetime) -> Deployment:
    replicas = 1 if document.replicas is None else document.replicas
    return Deployment(uuid4(), document.deployment, replicas, _PENDING, None, None, 1, now)


def _after(  # noqa: PLR0913  (all that an activation is decided by)
    connection: Connection[Any],
    deployment: Deployment,
    command: Command,
    document: Document,
    state: Stored,
    now: datetime,
) -> Deployment:
    """The deployment after one part; parts that only describe leave it as it is."""
    match command:
        case Scale(desired_replicas=replicas, with_rollout=with_rollout):
            return scale(deployment, replicas, with_rollout=with_rollout).deployment
        case ActivateRevision(revision=name, supersede=supersede, desired_replicas=desired):
            deploying = state.deployment.deploying if state.deployment else None
            revision_id = state.revision.id if state.revision else uuid4()
            before = state.deployment
            policy = before.policy if before and not document.mentions_policy else document.parsed_policy
            spec = document.revision.spec if document.revision else None
            request = ActivationRequest(
                *(revision_id, name, deploying, policy, supersede, desired),
                labels=spec.hosts if spec else {},
                hosts=labels_by_host(connection) if spec and spec.hosts else {},
            )
            hosts = hosts_ahead(connection, spec.model_dump() if spec else {}, revision_id)
            return after_activation(deployment, request, now, hosts)
        case Retry():
            return try_now(deployment).deployment
    return deployment
