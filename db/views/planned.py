"""The read for plans of an activation: the deployment as it would be once a revision is activated."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection

from db.views.deployments import deployment_named
from db.views.foresight import foreseeable
from db.views.timeline import revision_named
from domain.activation import ActivationRequest
from domain.errors import RevisionNotFoundError
from domain.foresight.learned import Learned
from domain.foresight.subject import Subject, after_activation
from domain.strategies import stored_policy


@dataclass(frozen=True, slots=True)
class Activated:
    """What a plan is made from, at the database's time `now`."""

    subject: Subject
    learned: Learned
    now: datetime


def activated(connection: Connection[Any], name: str, revision: str) -> Activated:
    """As if this revision were activated now. Raises what the activation itself would raise."""
    view = deployment_named(connection, name)
    found = revision_named(connection, view.id, revision)
    if found is None:
        raise RevisionNotFoundError(f"{name} has no revision {revision}", deployment=name, revision=revision)
    known = foreseeable(connection, view)
    policy = stored_policy(view.policy) if view.policy else None
    request = ActivationRequest(found.id, revision, view.deploying_revision, policy)
    deployment = after_activation(known.deployment, request, known.now)
    is_checked = bool(found.spec.get("health_check")) or found.spec.get("runtime") == "external"
    return Activated(Subject(deployment, has_health_check=is_checked), known.learned, known.now)
