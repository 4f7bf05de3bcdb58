"""The reads for plans: a deployment as it would be once a revision is activated, or the rest of what is under way."""

from dataclasses import dataclass
from datetime import datetime

from db.views.ahead.foresight import Foreseeable
from db.views.deployments import DeploymentView
from db.views.timeline import RevisionView
from domain.foresight.plan.subject import Subject, after_activation, says_when_healthy
from domain.foresight.rehearsal.learned import Learned
from domain.steering.activation import ActivationRequest
from domain.strategies import stored_policy
from domain.words.errors import RevisionNotFoundError


@dataclass(frozen=True, slots=True)
class Planned:
    """What a plan is made from, at the database's time `now`."""

    subject: Subject
    learned: Learned
    now: datetime


def planned_activation(view: DeploymentView, known: Foreseeable, found: RevisionView | None, name: str) -> Planned:
    """The deployment with the revision of that name as it was found. Raises RevisionNotFoundError where it was not."""
    if found is None:
        message = f"{view.name} has no revision {name}; 'rollway status {view.name}' lists them"
        raise RevisionNotFoundError(message, deployment=view.name, revision=name)
    policy = stored_policy(view.policy) if view.policy else None
    request = ActivationRequest(found.id, name, view.deploying_revision, policy)
    subject = Subject(after_activation(known.deployment, request, known.now), _is_checked(found))
    return Planned(subject, known.learned, known.now)


def planned_rest(known: Foreseeable, runs: RevisionView | None) -> Planned:
    """The deployment as it stands. `runs`: the revision that it goes to, or stands at."""
    return Planned(Subject(known.deployment, _is_checked(runs)), known.learned, known.now)


def _is_checked(revision: RevisionView | None) -> bool:
    """Whether the revision says when it is healthy; where there is none, nothing is to be checked."""
    return revision is None or says_when_healthy(revision.spec)
