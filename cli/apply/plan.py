"""What `rollway apply` does to a deployment: the file against what the database has, as commands in order."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from cli.apply.file import DeploymentFile
from db.views.deployments import DeploymentView
from db.views.fleet.entrances import ReachedView
from db.views.timeline import RevisionView
from domain.commands.base import Command
from domain.commands.deployment import AddRevision, CreateDeployment, Scale, SetPolicy, SetTraffic
from domain.commands.messages import parse_command
from domain.commands.rollout import ActivateRevision
from domain.model.deployment import Lifecycle
from domain.revisions.stored import StoredSpec, stored_spec, with_values_of
from domain.steering.activation import Activation, ActivationRequest, decide_activation
from domain.strategies import parse_policy
from domain.traffic.entrances import entrances_in_words
from domain.traffic.published import Entrance
from domain.words.errors import EntranceTakenError, RevisionExistsError, WrongStateError


@dataclass(frozen=True, slots=True)
class Known:
    """What the database has: the file's deployment, the revision of the file's name, where the deployment is reached.

    `is_restarted`: what runs is a restart of that revision. `owners`: which other deployments have entrances that the
    file names.
    """

    deployment: DeploymentView | None = None
    revision: RevisionView | None = None
    reached: ReachedView | None = None
    is_restarted: bool = False
    owners: Mapping[Entrance, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A command, and what it does in words."""

    command: Command
    sentence: str


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """How to apply; each command gets an id of its own made from `request_id`."""

    actor: str
    reason: str
    request_id: str
    supersede: bool = False
    activate: bool = True
    through_freeze: bool = False

    def step(self, command: type[Command], deployment: str, sentence: str, **settings: object) -> PlannedStep:
        """A command to the deployment, and what it does in words."""
        payload = {
            "deployment": deployment,
            "request_id": f"{self.request_id}/{deployment}/{command.task.rpartition('.')[2]}",
            "actor": self.actor,
            "reason": self.reason,
            **settings,
        }
        return PlannedStep(parse_command(command.task, payload), sentence)


_Part = Callable[[DeploymentFile, Known, ApplyRequest], Iterator[PlannedStep]]


def plan(file: DeploymentFile, known: Known, request: ApplyRequest) -> list[PlannedStep]:
    """The commands that make the deployment what the file says; empty when it is that already.

    Raises RevisionExistsError, WrongStateError, EntranceTakenError and DeploymentAlreadyInProgressError, before
    anything is written.
    """
    if known.deployment and known.deployment.lifecycle is Lifecycle.DESTROYING:
        message = f"{file.deployment} is being destroyed; apply again when 'rollway status' no longer lists it"
        raise WrongStateError(message, deployment=file.deployment, state=known.deployment.lifecycle)
    parts: tuple[_Part, ...] = (_create, _set_policy, _scale, _set_traffic, _add_revision, _activate)
    file = _with_stored_values(file, known.revision)
    return [step for part in parts for step in part(file, known, request)]


def _with_stored_values(file: DeploymentFile, stored: RevisionView | None) -> DeploymentFile:
    """A masked value of a revision that exists is the one that it has: what people are shown can be applied again."""
    if file.revision is None or stored is None:
        return file
    return file.model_copy(update={"revision": with_values_of(stored.spec, file.revision)})


def _create(file: DeploymentFile, known: Known, request: ApplyRequest) -> Iterator[PlannedStep]:
    if known.deployment is None:
        replicas = 1 if file.replicas is None else file.replicas
        settings = {"desired_replicas": replicas, "policy": file.policy}
        yield request.step(CreateDeployment, file.deployment, f"created, {replicas} replicas wanted", **settings)


def _set_policy(file: DeploymentFile, known: Known, request: ApplyRequest) -> Iterator[PlannedStep]:
    if known.deployment is None or not file.mentions_policy:
        return
    policy = file.parsed_policy
    stored = known.deployment.policy
    if policy != (parse_policy(stored) if stored else None):
        sentence = f"policy {policy.strategy}, for rollouts from now on" if policy else "policy removed"
        yield request.step(SetPolicy, file.deployment, sentence, policy=file.policy)


def _scale(file: DeploymentFile, known: Known, request: ApplyRequest) -> Iterator[PlannedStep]:
    before = known.deployment.desired_replicas if known.deployment else file.replicas
    if file.replicas not in (None, before):
        sentence = f"scaled from {before} to {file.replicas} replicas"
        yield request.step(Scale, file.deployment, sentence, desired_replicas=file.replicas)


def _set_traffic(file: DeploymentFile, known: Known, request: ApplyRequest) -> Iterator[PlannedStep]:
    wanted = file.wanted_traffic
    if wanted is None:
        return
    for entrance, owner in known.owners.items():
        if not wanted.is_default:
            raise EntranceTakenError.by(owner, file.deployment, entrance.kind, entrance.value)
    free = tuple(entrance for entrance in wanted.entrances_of(file.deployment) if entrance not in known.owners)
    if known.reached != ReachedView(free, wanted.rules):
        sentence = f"reached as {entrances_in_words(free, wanted.rules)}"
        yield request.step(SetTraffic, file.deployment, sentence, **wanted.model_dump(mode="json"))


def _add_revision(file: DeploymentFile, known: Known, request: ApplyRequest) -> Iterator[PlannedStep]:
    if file.revision is None:
        return
    spec, name = file.revision.spec, file.revision_name
    if known.revision is None:
        sentence = f"revision {name} added"
        yield request.step(AddRevision, file.deployment, sentence, name=name, spec=spec.model_dump(mode="json"))
    elif stored_spec(json.dumps(known.revision.spec)) != StoredSpec(spec):
        raise RevisionExistsError.of(file.deployment, known.revision.name)


def _activate(file: DeploymentFile, known: Known, request: ApplyRequest) -> Iterator[PlannedStep]:
    if not (file.revision_name and file.activate and request.activate) or known.is_restarted:
        return
    sentence = f"revision {file.revision_name} activated"
    if known.deployment is not None:
        sentence = _activation(file, file.revision_name, known.deployment, known.revision, request)
    if sentence:
        how = {"supersede": request.supersede, "through_freeze": request.through_freeze}
        yield request.step(ActivateRevision, file.deployment, sentence, revision=file.revision_name, **how)


def _activation(
    file: DeploymentFile,
    name: str,
    deployment: DeploymentView,
    revision: RevisionView | None,
    request: ApplyRequest,
) -> str:
    """What an activation comes to, in words; empty when there is nothing to do."""
    policy = file.policy if file.mentions_policy else deployment.policy
    wanted = ActivationRequest(
        revision.id if revision else uuid4(),
        name,
        deployment.deploying_revision,
        parse_policy(policy) if policy else None,
        request.supersede,
    )
    match decide_activation(deployment.snapshot, wanted):
        case Activation.ALREADY_ACTIVE | Activation.RESUMED | Activation.CONVERGING:
            return ""
        case Activation.FIRST if wanted.revision_id == deployment.current_revision_id:
            return ""
        case Activation.BEGUN:
            return f"rollout from {deployment.current_revision} to {name} begun"
        case Activation.SUPERSEDED:
            return f"rollout to {name} begun, leaving the one to {deployment.deploying_revision}"
        case Activation.FIRST | Activation.MOVED:
            return f"revision {name} activated"
