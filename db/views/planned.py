"""The reads for plans: a deployment as it would be once a revision is activated, or the rest of what is under way."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection

from db.views.deployments import DeploymentView, deployment_named
from db.views.foresight import foreseeable
from db.views.timeline import RevisionView, revision_named
from domain.activation import ActivationRequest
from domain.errors import RevisionNotFoundError
from domain.foresight.learned import Learned
from domain.foresight.subject import Subject, after_activation, says_when_healthy
from domain.strategies import stored_policy


@dataclass(frozen=True, slots=True)
class Planned:
    """What a plan is made from, at the database's time `now`. `view`: the deployment as it stands.

    `to_revision`: the name of what is to run, empty where nothing is.
    """

    view: DeploymentView
    to_revision: str
    subject: Subject
    learned: Learned
    now: datetime


def activated(connection: Connection[Any], name: str, revision: str) -> Planned:
    """As if this revision were activated now. Raises what the activation itself would raise."""
    view = deployment_named(connection, name)
    found = revision_named(connection, view.id, revision)
    if found is None:
        message = f"{name} has no revision {revision}; 'rollway status {name}' lists them"
        raise RevisionNotFoundError(message, deployment=name, revision=revision)
    known = foreseeable(connection, view)
    policy = stored_policy(view.policy) if view.policy else None
    request = ActivationRequest(found.id, revision, view.deploying_revision, policy)
    subject = Subject(after_activation(known.deployment, request, known.now), _is_checked(found))
    return Planned(view, revision, subject, known.learned, known.now)


def under_way(connection: Connection[Any], name: str) -> Planned:
    """As it stands. Raises DeploymentNotFoundError."""
    view = deployment_named(connection, name)
    known = foreseeable(connection, view)
    revision = view.deploying_revision or view.current_revision or ""
    subject = Subject(known.deployment, _is_checked(revision_named(connection, view.id, revision)))
    return Planned(view, revision, subject, known.learned, known.now)


def _is_checked(revision: RevisionView | None) -> bool:
    """Of no revision there is nothing to check."""
    return revision is None or says_when_healthy(revision.spec)
