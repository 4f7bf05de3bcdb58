"""An apply comes apart into the commands that make a deployment what its document says; nothing where it is that."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from domain.commands.apply.document import Apply, Document
from domain.commands.apply.stored import Stored, StoredDeployment, StoredRevision
from domain.commands.base import Command
from domain.commands.deployment import AddRevision, CreateDeployment, Scale, SetPolicy, SetTraffic
from domain.commands.messages import parse_command
from domain.commands.rollout import ActivateRevision, Retry
from domain.installation.tokens import NotAllowedError, Role
from domain.model.states import Lifecycle
from domain.revisions.revision import RevisionExistsError
from domain.revisions.stored import StoredSpec, stored_spec, with_values_of
from domain.steering.activation import Activation, ActivationRequest, decide_activation
from domain.traffic.entrances import EntranceTakenError
from domain.traffic.worded import entrances_in_words
from domain.words.errors import WrongStateError
from domain.words.numbers import number_of


@dataclass(frozen=True, slots=True)
class Part:
    """A command, and what it does in words."""

    command: Command
    sentence: str


_NOT_STORED_YET = UUID(int=0)
_Parts = Callable[[Document, Stored, Apply], Iterator[Part]]


def parts(document: Document, stored: Stored, apply: Apply) -> list[Part]:
    """The commands that make the deployment what the document says; empty when it is that already.

    Raises RevisionExistsError, WrongStateError, EntranceTakenError and DeploymentAlreadyInProgressError.
    """
    if stored.deployment and stored.deployment.snapshot.status.lifecycle is Lifecycle.DESTROYING:
        message = f"{document.deployment} is being destroyed; apply again when 'rollway status' no longer lists it"
        raise WrongStateError(message, deployment=document.deployment, state=Lifecycle.DESTROYING)
    kinds: tuple[_Parts, ...] = (_create, _set_policy, _scale, _set_traffic, _add_revision, _activate, _try_again)
    document = _with_stored_values(document, stored.revision)
    return [part for kind in kinds for part in kind(document, stored, apply)]


def refuse_beyond(role: Role, found: Sequence[Part]) -> None:
    """Raises NotAllowedError for a part that this role could not ask for alone."""
    for part in found:
        needed = part.command.door.role
        if not role.reaches(needed):
            message = f"{part.sentence}: this needs the role {needed}, and not {role}; nothing was applied"
            raise NotAllowedError(message, needed=needed, role=role)


def told_of(document: Document, done: Sequence[Part], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Tell what became of the document, as an `AppliedDocument`."""
    rollout_id = next((result["rollout_id"] for result in results if result.get("rollout_id")), None)
    sentences = [part.sentence for part in done]
    return {"deployment": document.deployment, "done": sentences, "results": list(results), "rollout_id": rollout_id}


def _part(apply: Apply, kind: type[Command], document: Document, sentence: str, **settings: object) -> Part:
    shared = {"request_id": apply.request_id, "actor": apply.actor, "reason": apply.reason}
    payload = {"deployment": document.deployment, **shared, **settings}
    return Part(parse_command(kind.task, payload), sentence)


def _with_stored_values(document: Document, stored: StoredRevision | None) -> Document:
    """A masked value of a revision that exists is the one that it has: what people are shown can be applied again."""
    if document.revision is None or stored is None:
        return document
    return document.model_copy(update={"revision": with_values_of(stored.spec, document.revision)})


def _create(document: Document, stored: Stored, apply: Apply) -> Iterator[Part]:
    if stored.deployment is None:
        replicas = 1 if document.replicas is None else document.replicas
        settings = {"desired_replicas": replicas, "policy": document.policy}
        yield _part(apply, CreateDeployment, document, f"created, {number_of(replicas, 'replica')} wanted", **settings)


def _set_policy(document: Document, stored: Stored, apply: Apply) -> Iterator[Part]:
    if stored.deployment is None or not document.mentions_policy:
        return
    policy = document.parsed_policy
    if policy != stored.deployment.policy:
        sentence = f"policy {policy.strategy}, for rollouts from now on" if policy else "policy removed"
        yield _part(apply, SetPolicy, document, sentence, policy=document.policy)


def _scale(document: Document, stored: Stored, apply: Apply) -> Iterator[Part]:
    before = stored.deployment.snapshot.desired_replicas if stored.deployment else document.replicas
    if document.replicas not in (None, before):
        sentence = f"scaled from {before} to {document.replicas} replicas"
        yield _part(apply, Scale, document, sentence, desired_replicas=document.replicas)


def _set_traffic(document: Document, stored: Stored, apply: Apply) -> Iterator[Part]:
    wanted = document.wanted_traffic
    if wanted is None:
        return
    for entrance, owner in stored.owners.items():
        if not wanted.is_default:
            raise EntranceTakenError.by(owner, document.deployment, entrance.kind, entrance.value)
    free = tuple(entrance for entrance in wanted.entrances_of(document.deployment) if entrance not in stored.owners)
    if stored.deployment is None or stored.deployment.reached != (free, wanted.rules):
        sentence = f"reached as {entrances_in_words(free, wanted.rules)}"
        yield _part(apply, SetTraffic, document, sentence, **wanted.model_dump(mode="json"))


def _add_revision(document: Document, stored: Stored, apply: Apply) -> Iterator[Part]:
    if document.revision is None:
        return
    spec, name = document.revision.spec, document.revision_name
    if stored.revision is None:
        yield _part(
            apply, AddRevision, document, f"revision {name} added", name=name, spec=spec.model_dump(mode="json")
        )
    elif stored_spec(json.dumps(stored.revision.spec)) != StoredSpec(spec):
        raise RevisionExistsError.of(document.deployment, stored.revision.name)


def _activate(document: Document, stored: Stored, apply: Apply) -> Iterator[Part]:
    name = document.revision_name
    if not (name and document.activate and apply.activate) or stored.is_restarted:
        return
    sentence = f"revision {name} activated"
    if stored.deployment is not None:
        sentence = _activation(document, name, stored.deployment, stored.revision, apply)
    if sentence:
        how = {"supersede": apply.supersede, "through_freeze": apply.through_freeze}
        yield _part(apply, ActivateRevision, document, sentence, revision=name, **how)


def _try_again(document: Document, stored: Stored, apply: Apply) -> Iterator[Part]:
    """Yield what ends the pauses: who applies what fails to start has mended something, and means now."""
    known = stored.deployment
    if known is None or not known.is_held_back or not (document.activate and apply.activate):
        return
    if next(_activate(document, stored, apply), None) is None:
        sentence = f"tried again now, {number_of(known.failed_starts, 'failed start')} forgotten"
        yield _part(apply, Retry, document, sentence, now=True)


def _activation(
    document: Document, name: str, deployment: StoredDeployment, revision: StoredRevision | None, apply: Apply
) -> str:
    """Say what an activation comes to; empty when there is nothing to do."""
    wanted = ActivationRequest(
        revision.id if revision else _NOT_STORED_YET,
        name,
        deployment.deploying,
        document.parsed_policy if document.mentions_policy else deployment.policy,
        apply.supersede,
    )
    match decide_activation(deployment.snapshot, wanted):
        case Activation.ALREADY_ACTIVE | Activation.RESUMED | Activation.CONVERGING:
            return ""
        case Activation.FIRST if wanted.revision_id == deployment.snapshot.current_revision_id:
            return ""
        case Activation.BEGUN:
            return f"rollout from {deployment.current} to {name} begun"
        case Activation.SUPERSEDED:
            return f"rollout to {name} begun, leaving the one to {deployment.deploying}"
        case Activation.FIRST | Activation.MOVED:
            return f"revision {name} activated"
