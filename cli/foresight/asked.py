"""What is to be foreseen: an activation by name, what a file would lead to, or the rest of what is under way."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from cli.apply.file import DeploymentFile, read_file
from cli.apply.known import known_of
from cli.apply.plan import ApplyRequest, Known, plan
from cli.servers import Reader
from cli.terminal.exits import UsageError
from db.views.ahead.foresight import foreseeable
from db.views.ahead.planned import planned_activation, planned_rest
from db.views.deployments import deployment_named
from db.views.timeline import revision_shown
from domain.commands.base import Command
from domain.commands.deployment import Scale
from domain.commands.rollout import ActivateRevision
from domain.foresight.plan.drawn import Draw
from domain.foresight.plan.subject import Subject, after_activation, says_when_healthy
from domain.foresight.rehearsal.learned import Learned
from domain.model.deployment import Deployment, DeploymentLifecycleStatus, Lifecycle
from domain.model.policy import DeploymentPolicy
from domain.steering.activation import ActivationRequest
from domain.steering.verbs import scale
from domain.strategies import stored_policy

_PENDING = DeploymentLifecycleStatus(Lifecycle.PENDING)


@dataclass(frozen=True, slots=True)
class Asked:
    """One deployment to foresee at the database's time `now`; revisions by name, empty where there is none."""

    name: str
    from_revision: str
    to_revision: str
    subject: Subject
    learned: Learned
    now: datetime

    @property
    def title(self) -> str:
        """E.g. "web: v1 → v2, 3 replicas, rolling_update"."""
        moves = f"{self.from_revision} → {self.to_revision}" if self.from_revision else self.to_revision
        deployment = self.subject.deployment
        how = f", {deployment.rollout.policy.strategy}" if deployment.rollout else ""
        return f"{self.name}: {moves or 'no revision'}, {deployment.desired_replicas} replicas{how}"

    def chance(self, seed: int = 0) -> Draw:
        """Draws that are the same for the same question, so that it is answered alike each time."""
        return random.Random(f"{self.name} {self.to_revision} {seed}").random  # noqa: S311  (nobody is to be kept out)


def asked_for(reader: Reader, deployment: str | None, revision: str | None, file: str | None) -> list[Asked]:
    """What the arguments of a command name. Raises UsageError, and the refusals that the change itself would meet."""
    if file is not None:
        if deployment is not None:
            raise UsageError("give either --file, or the name of a deployment and of a revision: not both")
        return [_of_file(reader, document) for document in read_file(file)]
    if deployment is None:
        raise UsageError("name a deployment and a revision, or a file with --file")
    return [_of_name(reader, deployment, revision)]


def _of_name(reader: Reader, name: str, revision: str | None) -> Asked:
    view = reader.read(deployment_named, name)
    known = reader.read(foreseeable, view)
    to = revision or view.deploying_revision or view.current_revision or ""
    found = reader.read(revision_shown, view.id, to) if to else None
    planned = planned_activation(view, known, found, revision) if revision else planned_rest(known, found)
    before = view.current_revision or ""
    return Asked(name, before if before != to else "", to, planned.subject, planned.learned, planned.now)


def _of_file(reader: Reader, file: DeploymentFile) -> Asked:
    known = known_of(reader, file)
    found = reader.read(foreseeable, known.deployment) if known.deployment else None
    now = found.now if found else datetime.now(UTC)
    request = ApplyRequest("plan", "", str(uuid4()))
    deployment = found.deployment if found else _created(file, now)
    for step in plan(file, known, request):
        deployment = _after(deployment, step.command, file, known, now)
    runs = known.deployment.current_revision if known.deployment else None
    revision = file.revision_name or runs or ""
    is_checked = file.revision is None or says_when_healthy(file.revision.spec.model_dump())
    return Asked(
        file.deployment,
        runs if runs and runs != revision else "",
        revision,
        Subject(deployment, is_checked),
        found.learned if found else Learned(),
        now,
    )


def _created(file: DeploymentFile, now: datetime) -> Deployment:
    replicas = 1 if file.replicas is None else file.replicas
    return Deployment(uuid4(), file.deployment, replicas, _PENDING, None, None, 1, now)


def _after(deployment: Deployment, command: Command, file: DeploymentFile, known: Known, now: datetime) -> Deployment:
    """What one command of the file leaves; those that only describe leave the deployment as it is."""
    match command:
        case Scale(desired_replicas=replicas):
            return scale(deployment, replicas).deployment
        case ActivateRevision(revision=name, supersede=supersede):
            deploying = known.deployment.deploying_revision if known.deployment else None
            revision_id = known.revision.id if known.revision else uuid4()
            request = ActivationRequest(revision_id, name, deploying, _policy(file, known), supersede)
            return after_activation(deployment, request, now)
    return deployment


def _policy(file: DeploymentFile, known: Known) -> DeploymentPolicy | None:
    if file.mentions_policy or known.deployment is None:
        return file.parsed_policy
    return stored_policy(known.deployment.policy) if known.deployment.policy else None
