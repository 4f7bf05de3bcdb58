"""What `rollway apply` does to a deployment: what its file says against what there is, as commands in order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from cli.apply.file import DeploymentFile
from db.views.deployments import DeploymentView
from db.views.entrances import ReachedView
from domain.activation import Activation, ActivationRequest, decide_activation
from domain.commands import (
    ActivateRevision,
    AddRevision,
    Command,
    CreateDeployment,
    Scale,
    SetPolicy,
    SetTraffic,
)
from domain.errors import EntranceTakenError, RevisionExistsError, WrongStateError
from domain.messages import parse_command
from domain.model import Lifecycle
from domain.policy import DeploymentPolicy
from domain.replicas.revision import RevisionSpec
from domain.strategies import parse_policy
from domain.traffic.entrances import entrances_in_words
from domain.traffic.published import Entrance


@dataclass(frozen=True, slots=True)
class KnownRevision:
    """A revision that the deployment has already."""

    id: UUID
    spec: RevisionSpec


@dataclass(frozen=True, slots=True)
class KnownTraffic:
    """Where the deployment is reached, None when there is none yet, and what of the file's wishes others have."""

    reached: ReachedView | None
    taken: Mapping[Entrance, str]


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """How to apply; each command gets an id of its own made from `request_id`."""

    actor: str
    reason: str
    request_id: str
    supersede: bool = False
    activate: bool = True


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A command, and what it does in words."""

    command: Command
    said: str


def plan(
    file: DeploymentFile,
    there: DeploymentView | None,
    known: KnownRevision | None,
    traffic: KnownTraffic,
    request: ApplyRequest,
) -> list[PlannedStep]:
    """Empty when there is nothing to do. `known`: the revision of the file's name.

    Raises RevisionExistsError, WrongStateError, EntranceTakenError and DeploymentAlreadyInProgressError, before
    anything is written.
    """
    if there and there.lifecycle is Lifecycle.DESTROYING:
        message = f"{file.deployment} is being destroyed; apply again when 'rollway status' no longer lists it"
        raise WrongStateError(message, deployment=file.deployment, state=there.lifecycle)
    steps = [_create(file, request)] if there is None else _changes(file, there, request)
    steps += _traffic(file, traffic, request)
    if file.revision is None:
        return steps
    if known is None:
        steps.append(_add_revision(file, request))
    elif known.spec != file.revision.spec:
        message = (
            f"revision {file.revision_name} of {file.deployment} exists with another content; "
            f"revisions never change, give it another name"
        )
        raise RevisionExistsError(message, deployment=file.deployment, revision=file.revision_name)
    if file.activate and request.activate:
        steps += _activate(file, there, known, request)
    return steps


def _create(file: DeploymentFile, request: ApplyRequest) -> PlannedStep:
    replicas = 1 if file.replicas is None else file.replicas
    settings = {"desired_replicas": replicas, "policy": _policy_json(file.parsed_policy)}
    return _step(CreateDeployment, file, request, settings, f"created, {replicas} replicas wanted")


def _changes(file: DeploymentFile, there: DeploymentView, request: ApplyRequest) -> list[PlannedStep]:
    steps = []
    policy = file.parsed_policy
    if file.mentions_policy and policy != _stored_policy(there):
        said = f"policy {policy.strategy}, for rollouts from now on" if policy else "policy removed"
        steps.append(_step(SetPolicy, file, request, {"policy": _policy_json(policy)}, said))
    if file.replicas is not None and file.replicas != there.desired_replicas:
        said = f"scaled from {there.desired_replicas} to {file.replicas} replicas"
        steps.append(_step(Scale, file, request, {"desired_replicas": file.replicas}, said))
    return steps


def _traffic(file: DeploymentFile, known: KnownTraffic, request: ApplyRequest) -> list[PlannedStep]:
    wanted = file.wanted_traffic
    if wanted is None:
        return []
    entrances = wanted.entrances_of(file.deployment)
    for entrance, owner in known.taken.items():
        if not wanted.is_default:
            raise EntranceTakenError.by(owner, file.deployment, entrance.kind, entrance.value)
    left = tuple(one for one in entrances if one not in known.taken)
    if known.reached == ReachedView(left, wanted.request_timeout_seconds):
        return []
    said = f"reached as {entrances_in_words(left, wanted.request_timeout_seconds)}"
    return [_step(SetTraffic, file, request, wanted.model_dump(mode="json"), said)]


def _add_revision(file: DeploymentFile, request: ApplyRequest) -> PlannedStep:
    if file.revision is None:
        message = "there is no revision to add"
        raise ValueError(message)
    settings = {"name": file.revision_name, "spec": file.revision.spec.model_dump(mode="json")}
    return _step(AddRevision, file, request, settings, f"revision {file.revision_name} added")


def _activate(
    file: DeploymentFile, there: DeploymentView | None, known: KnownRevision | None, request: ApplyRequest
) -> list[PlannedStep]:
    name = file.revision_name or ""
    said = f"revision {name} activated"
    if there is not None:
        policy = file.parsed_policy if file.mentions_policy else _stored_policy(there)
        revision_id = known.id if known else uuid4()
        wanted = ActivationRequest(revision_id, name, there.deploying_revision, policy, request.supersede)
        match decide_activation(there.snapshot, wanted):
            case Activation.ALREADY_ACTIVE | Activation.RESUMED | Activation.CONVERGING:
                return []
            case Activation.BEGUN:
                said = f"rollout from {there.current_revision} to {name} begun"
            case Activation.SUPERSEDED:
                said = f"rollout to {name} begun, leaving the one to {there.deploying_revision}"
            case Activation.FIRST if known and known.id == there.current_revision_id:
                return []
            case Activation.FIRST | Activation.MOVED:
                pass
    settings = {"revision": name, "supersede": request.supersede}
    return [_step(ActivateRevision, file, request, settings, said)]


def _step(
    command: type[Command], file: DeploymentFile, request: ApplyRequest, settings: Mapping[str, Any], said: str
) -> PlannedStep:
    payload = {
        "deployment": file.deployment,
        "request_id": f"{request.request_id}/{file.deployment}/{command.task.rpartition('.')[2]}",
        "actor": request.actor,
        "reason": request.reason,
        **settings,
    }
    return PlannedStep(parse_command(command.task, payload), said)


def _stored_policy(there: DeploymentView) -> DeploymentPolicy | None:
    return None if there.policy is None else parse_policy(there.policy)


def _policy_json(policy: DeploymentPolicy | None) -> dict[str, Any] | None:
    return None if policy is None else policy.as_json()
