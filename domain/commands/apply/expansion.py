"""Turns a document into the commands that make its deployment match; none if it matches already."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from domain.autoscaling.rule import AutoscalingRule
from domain.commands.apply.document import Apply, Document, RevisionSection
from domain.commands.base import Command
from domain.commands.deployment_commands import AddRevision, CreateDeployment, Scale, SetPolicy, SetTraffic
from domain.commands.registry import parse_command
from domain.commands.rollout_commands import ActivateRevision, Retry
from domain.cycle.evaluator import EVALUATOR
from domain.installation.tokens import NotAllowedError, Role
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.model.states import Lifecycle
from domain.revisions.revision import RevisionExistsError, StoredSpec, stored_spec, with_values_of
from domain.steering.activation import Activation, ActivationRequest, decide_activation
from domain.text.errors import WrongStateError
from domain.text.numbers import number_of
from domain.traffic.entrances import EntranceTakenError, entrances_in_words
from domain.traffic.release import Reached
from domain.traffic.snapshot import Entrance
from domain.traffic.wire import Wire


@dataclass(frozen=True, slots=True)
class StoredRevision:
    """A revision as it is stored: `spec` holds its values. `wire`: how its replicas are spoken to; None: as all are."""

    id: UUID
    name: str
    spec: dict[str, Any]
    wire: Wire | None = None


@dataclass(frozen=True, slots=True)
class StoredDeployment:
    """The stored parts of a deployment next to its snapshot.

    `current` and `deploying`: the names of its revisions. `release`: the traffic settings of its rollout, if it brings
    some. `failed_starts`: the number of failed starts in a row, if none has come up since. `rules`: these set its size.
    """

    snapshot: Deployment
    policy: DeploymentPolicy | None
    current: str | None
    deploying: str | None
    reachable: Reached
    failed_starts: int = 0
    release: Reached | None = None
    rules: tuple[AutoscalingRule, ...] = ()

    @property
    def is_held_back(self) -> bool:
        """Whether starts are tried ever more slowly, or have been given up for a while."""
        return bool(self.failed_starts or self.snapshot.degraded_reason or self.snapshot.retry_at)


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored side of a document: its deployment, and the revision of its name.

    `is_restarted`: what runs is a restart of that revision. `owners`: which other deployments have entrances that the
    document names.
    """

    deployment: StoredDeployment | None = None
    revision: StoredRevision | None = None
    is_restarted: bool = False
    owners: Mapping[Entrance, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """A command, and its effect in words."""

    command: Command
    sentence: str


_NOT_STORED_YET = UUID(int=0)
_ROLLOUT = frozenset({Activation.BEGUN, Activation.SUPERSEDED, Activation.RESUMED})
"""Activations with a rollout, which brings the size and traffic of its revision and takes them back if it fails."""
_Parts = Callable[[Document, Stored, Apply], Iterator[Part]]


def parts(document: Document, state: Stored, apply: Apply) -> list[Part]:
    """The commands that make the deployment match the document; empty if it matches already.

    Raises RevisionExistsError, WrongStateError, EntranceTakenError and DeploymentAlreadyInProgressError.
    """
    if state.deployment and state.deployment.snapshot.status.lifecycle is Lifecycle.DESTROYING:
        message = f"{document.deployment} is being destroyed; apply again when 'rollway status' no longer lists it"
        raise WrongStateError(message, deployment=document.deployment, state=Lifecycle.DESTROYING)
    kinds: tuple[_Parts, ...] = (
        _create,
        _set_policy,
        _scale,
        _set_traffic,
        _add_revision,
        _activate,
        _bring_traffic,
        _try_again,
    )
    document = _with_stored_values(document, state.revision)
    return [part for kind in kinds for part in kind(document, state, apply)]


def refuse_beyond(role: Role, part_list: Sequence[Part]) -> None:
    """Raises NotAllowedError for a part that this role could not ask for alone."""
    for part in part_list:
        needed = part.command.role
        if not role.reaches(needed):
            message = f"{part.sentence}: this needs the role {needed}, and not {role}; nothing was applied"
            raise NotAllowedError(message, needed=needed, role=role)


_SECTIONS: dict[type[Command], str] = {SetPolicy: "policy", Scale: "replicas", SetTraffic: "traffic"}


def settings_alone(state: Stored, part_list: Sequence[Part]) -> frozenset[str]:
    """The sections of a file that changes settings of a deployment at rest and nothing else; empty for any other."""
    kinds = {type(part.command) for part in part_list}
    if state.deployment is None or state.deployment.snapshot.rollout is not None or not kinds <= _SECTIONS.keys():
        return frozenset()
    return frozenset(_SECTIONS[kind] for kind in kinds)


def notes(document: Document, state: Stored, apply: Apply) -> tuple[str, ...]:
    """The parts of the document that have no effect, with the reasons, and what its author may not have meant."""
    return (*_without_effect(document, state, apply), *_doubts(document, state))


def _doubts(document: Document, state: Stored) -> Iterator[str]:
    """The doubts about a new revision: a path without a folder, and a deployment without rollouts."""
    revision = document.revision
    if revision is None or state.revision is not None:
        return
    if path := _relative_path(revision):
        yield f"{path} is a relative path, and a text has no folder: give a full path, or working_directory"
    if not document.mentions_policy and _policy(document, state) is None:
        yield "without a policy a new revision replaces the old one without a rollout: no undo, no receipt"


_SCRIPT = re.compile(r"[^\s:]+\.(py|pyz|js|mjs|cjs|ts|rb|php|pl|sh|lua|jar|exs)")


def _relative_path(revision: RevisionSection) -> str:
    """The first word of a process's command that is meant from some folder; empty where the revision names one."""
    if revision.runtime != "process":
        return ""
    if "working_directory" in revision.model_fields_set:  # null: where the workers run
        folder = revision.working_directory or "/"
        return "" if folder.startswith("/") else folder
    program, *words = revision.command or ("",)
    paths = [program] if "/" in program else []
    paths += [word for word in words if word.startswith(("./", "../")) or _SCRIPT.fullmatch(word)]
    return next((path for path in paths if not path.startswith(("/", "-"))), "")


def _without_effect(document: Document, state: Stored, apply: Apply) -> tuple[str, ...]:
    deployment = state.deployment
    if deployment is None:
        return ()
    if _only_registers(document, state, apply) and (document.replicas is not None or document.wanted_traffic):
        return (f"replicas and traffic come with {document.revision_name}: apply the file when that is to run",)
    size = deployment.snapshot.desired_replicas
    if deployment.rules and document.replicas not in (None, size):
        return (f"replicas: {document.replicas} is for a new deployment; rules set the size, {size} now",)
    return ()


def told_of(document: Document, parts: Sequence[Part], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The outcome of the document, as an `AppliedDocument` without its notes."""
    rollout_id = next((result["rollout_id"] for result in results if result.get("rollout_id")), None)
    sentences = [part.sentence for part in parts]
    return {"deployment": document.deployment, "done": sentences, "results": list(results), "rollout_id": rollout_id}


def _part(apply: Apply, kind: type[Command], document: Document, sentence: str, **settings: object) -> Part:
    shared = {"request_id": apply.request_id, "actor": apply.actor, "reason": apply.reason}
    payload = {"deployment": document.deployment, **shared, **settings}
    return Part(parse_command(kind.task, payload), sentence)


def _with_stored_values(document: Document, revision: StoredRevision | None) -> Document:
    """Fill in masked values from the stored revision: a document that people were shown can be applied again."""
    if document.revision is None or revision is None:
        return document
    return document.model_copy(update={"revision": with_values_of(revision.spec, document.revision)})


def _create(document: Document, state: Stored, apply: Apply) -> Iterator[Part]:
    if state.deployment is None:
        replicas = 1 if document.replicas is None else document.replicas
        settings = {"desired_replicas": replicas, "policy": document.policy}
        yield _part(apply, CreateDeployment, document, f"created, {number_of(replicas, 'replica')} wanted", **settings)


def _set_policy(document: Document, state: Stored, apply: Apply) -> Iterator[Part]:
    if state.deployment is None or not document.mentions_policy:
        return
    policy = document.parsed_policy
    if policy != state.deployment.policy:
        sentence = f"policy {policy.strategy}, for rollouts from now on" if policy else "policy removed"
        yield _part(apply, SetPolicy, document, sentence, policy=document.policy)


def _scale(document: Document, state: Stored, apply: Apply) -> Iterator[Part]:
    """Yield a size: one that a rollout begins with is part of its activation."""
    size, deployment = _another_size(document, state), state.deployment
    if deployment is None or size is None or _only_registers(document, state, apply):
        return
    before = deployment.snapshot.desired_replicas
    match _rollout(document, state, apply):
        case None:
            sentence = f"scaled from {before} to {size} replicas"
            yield _part(apply, Scale, document, sentence, desired_replicas=size)
        case Activation.RESUMED:
            sentence = f"rollout to {deployment.deploying} scaled from {before} to {size} replicas"
            yield _part(apply, Scale, document, sentence, desired_replicas=size, with_rollout=True)


def _another_size(document: Document, state: Stored) -> int | None:
    """The document's new size; None if it has none, or if rules set the size."""
    deployment = state.deployment
    if deployment is None or deployment.rules or document.replicas == deployment.snapshot.desired_replicas:
        return None
    return document.replicas


def _set_traffic(document: Document, state: Stored, apply: Apply) -> Iterator[Part]:
    """Yield settings that come with no rollout."""
    if not _rollout(document, state, apply) and not _only_registers(document, state, apply):
        yield from _traffic(document, state, apply, state.deployment.reachable if state.deployment else None)


def _bring_traffic(document: Document, state: Stored, apply: Apply) -> Iterator[Part]:
    """Yield settings that come with the rollout of the document."""
    deployment = state.deployment
    if deployment is not None and (rollout := _rollout(document, state, apply)):
        entrances, rules = (rollout is Activation.RESUMED and deployment.release) or deployment.reachable
        if state.revision is not None and state.revision.wire is not None:
            rules = rules.with_wire(state.revision.wire)
        yield from _traffic(document, state, apply, (entrances, rules))


def _traffic(document: Document, state: Stored, apply: Apply, current: Reached | None) -> Iterator[Part]:
    """Yield the settings of the document where they differ from `current`."""
    target = document.wanted_traffic
    if target is None:
        return
    for entrance, owner in state.owners.items():
        if not target.is_default:
            raise EntranceTakenError.by(owner, document.deployment, entrance.kind, entrance.value)
    free = tuple(entrance for entrance in target.entrances_of(document.deployment) if entrance not in state.owners)
    if current == (free, target.rules):
        return
    with_rollout = _rollout(document, state, apply) is not None
    sentence = f"reached as {entrances_in_words(free, target.rules)}"
    if with_rollout:
        sentence = f"{_exchange(document, state)} {sentence}"
    settings = target.model_dump(mode="json") | ({"with_rollout": True} if with_rollout else {})
    yield _part(apply, SetTraffic, document, sentence, **settings)


def _exchange(document: Document, state: Stored) -> str:
    """The moment from which the settings of the new revision hold, in words."""
    policy = _policy(document, state)
    return EVALUATOR.strategy_of(policy).exchange if policy else ""


def _only_registers(document: Document, state: Stored, apply: Apply) -> bool:
    """Whether the document only registers a revision: its size and traffic wait for the activation."""
    deployment = state.deployment
    if document.revision is None or (document.activate and apply.activate) or deployment is None:
        return False
    return document.revision_name not in (deployment.current, deployment.deploying)


def _rollout(document: Document, state: Stored, apply: Apply) -> Activation | None:
    """The activation that begins or continues a rollout to the revision; None without one."""
    activation = _activation(document, state, apply)
    is_back = state.deployment is not None and state.deployment.current == document.revision_name
    return activation if activation in _ROLLOUT and not is_back else None


def _add_revision(document: Document, state: Stored, apply: Apply) -> Iterator[Part]:
    if document.revision is None:
        return
    spec, name = document.revision.spec, document.revision_name
    if state.revision is None:
        yield _part(
            apply, AddRevision, document, f"revision {name} added", name=name, spec=spec.model_dump(mode="json")
        )
    elif stored_spec(json.dumps(state.revision.spec)) != StoredSpec(spec):
        raise RevisionExistsError.of(document.deployment, state.revision.name)


def _activate(document: Document, state: Stored, apply: Apply) -> Iterator[Part]:
    activation, name, deployment = _activation(document, state, apply), document.revision_name, state.deployment
    size = _another_size(document, state) if _rollout(document, state, apply) else None
    match activation:
        case None | Activation.ALREADY_ACTIVE | Activation.CONVERGING | Activation.RESUMED:
            return
        case Activation.FIRST if (
            deployment and state.revision and state.revision.id == deployment.snapshot.current_revision_id
        ):
            return
        case Activation.BEGUN if deployment:
            sentence = f"rollout from {deployment.current} to {name} started"
        case Activation.SUPERSEDED if deployment:
            sentence = f"rollout to {name} started, leaving the one to {deployment.deploying}"
        case _:
            sentence = f"revision {name} activated"
    how: dict[str, object] = {"supersede": apply.supersede, "through_freeze": apply.through_freeze}
    if size is not None:
        sentence, how = f"{sentence}, with {number_of(size, 'replica')}", {**how, "desired_replicas": size}
    yield _part(apply, ActivateRevision, document, sentence, revision=name, **how)


def _try_again(document: Document, state: Stored, apply: Apply) -> Iterator[Part]:
    """Yield a retry: applying a file that fails to start means that something was repaired."""
    deployment = state.deployment
    if deployment is None or not deployment.is_held_back or not (document.activate and apply.activate):
        return
    if next(_activate(document, state, apply), None) is None:
        sentence = f"tried again now, {number_of(deployment.failed_starts, 'failed start')} forgotten"
        yield _part(apply, Retry, document, sentence, now=True)


def _activation(document: Document, state: Stored, apply: Apply) -> Activation | None:
    """What activating the revision of the document comes to; None where that is not asked for.

    Raises WrongStateError and DeploymentAlreadyInProgressError.
    """
    name, deployment, revision = document.revision_name, state.deployment, state.revision
    if not (name and document.activate and apply.activate) or state.is_restarted:
        return None
    if deployment is None:
        return Activation.FIRST
    revision_id, policy = revision.id if revision else _NOT_STORED_YET, _policy(document, state)
    request = ActivationRequest(revision_id, name, deployment.deploying, policy, apply.supersede)
    return decide_activation(deployment.snapshot, request)


def _policy(document: Document, state: Stored) -> DeploymentPolicy | None:
    """The policy of the rollout that the document begins or continues."""
    if document.mentions_policy or state.deployment is None:
        return document.parsed_policy
    rollout = state.deployment.snapshot.rollout
    return state.deployment.policy or (rollout.policy if rollout else None)
