"""Compares documents with the stored deployments, with values masked unless they are asked for."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.commands.replica_protocols import own_wire
from db.cycle.autoscaling_rules import rules_of_one
from db.views.deployment_view import DeploymentView
from db.views.deployment_views import existing_deployments
from db.views.fleet_views import owners_of, reached_at
from db.views.timeline import revision_named
from domain.commands.apply.document import Apply, Document
from domain.commands.apply.expansion import Stored, StoredDeployment, StoredRevision, notes, parts
from domain.model.policy import DeploymentPolicy
from domain.revisions.revision import RevisionSpec, is_restart, stored_spec
from domain.revisions.secret_refs import MASK, masked
from domain.strategies.builtin import stored_policy
from domain.traffic.entrances import settings_of
from domain.traffic.release import known_release
from domain.traffic.snapshot import Entrance, EntranceKind, RequestRules


@dataclass(frozen=True, slots=True)
class DocumentDifference:
    """A document: the stored values of its fields, the values that it asks for, and what applying it would do.

    `notes`: parts of it that would have no effect, or that its author may not have meant.
    """

    deployment: str
    stored: dict[str, Any]
    wanted: dict[str, Any]
    would: tuple[str, ...]
    notes: tuple[str, ...] = ()


def differences(connection: Connection[Any], apply: Apply, *, with_values: bool = False) -> list[DocumentDifference]:
    """Compare the documents with what is stored. Raises what `domain.commands.apply.expansion.parts` raises.

    `with_values`: plain values of variables are shown where they differ.
    """
    return [_difference(connection, apply, document, with_values=with_values) for document in apply.documents]


def _difference(
    connection: Connection[Any], apply: Apply, document: Document, *, with_values: bool
) -> DocumentDifference:
    state = stored_of(connection, document)
    would = tuple(part.sentence for part in parts(document, state, apply))
    runs = _running(connection, document, state) if document.activate and apply.activate else state.revision
    before, after = _stored_values(document, state, runs), _wanted_values(document)
    _mask(before, after, with_values=with_values)
    return DocumentDifference(document.deployment, before, after, would, notes(document, state, apply))


def _running(connection: Connection[Any], document: Document, state: Stored) -> StoredRevision | None:
    """The revision that is rolled out, or else runs."""
    deployment = state.deployment
    if deployment is None or document.revision is None:
        return None
    name = deployment.deploying or deployment.current
    return stored_revision(connection, deployment.snapshot.id, name) if name else None


def _wanted_values(document: Document) -> dict[str, Any]:
    values: dict[str, Any] = {"deployment": document.deployment, "replicas": document.replicas}
    if document.revision is not None:
        values["revision"] = {"name": document.revision_name, **_content(document.revision.spec)}
    if document.mentions_policy:
        values["policy"] = _policy(document.parsed_policy)
    if (traffic := document.wanted_traffic) is not None:
        values["traffic"] = _traffic(document.deployment, traffic.entrances_of(document.deployment), traffic.rules)
    return {name: value for name, value in values.items() if value is not None or name == "policy"}


def _stored_values(document: Document, state: Stored, runs: StoredRevision | None) -> dict[str, Any]:
    deployment = state.deployment
    if deployment is None:
        return {}
    values: dict[str, Any] = {"deployment": document.deployment}
    if document.replicas is not None:
        values["replicas"] = deployment.snapshot.desired_replicas
    if document.revision is not None and runs is not None:
        name = document.revision_name if state.is_restarted else runs.name
        values["revision"] = {"name": name, **_content(stored_spec(json.dumps(runs.spec)).spec)}
    if document.mentions_policy:
        values["policy"] = _policy(deployment.policy)
    if document.wanted_traffic is not None:
        values["traffic"] = _traffic(document.deployment, *deployment.reachable)
    return values


def _content(spec: RevisionSpec) -> dict[str, Any]:
    content = spec.model_dump(mode="json", exclude_defaults=True)
    if "env" in content:
        content["env"] = dict(sorted(content["env"].items()))  # Postgres keeps no order of keys
    return content


def _policy(policy: DeploymentPolicy | None) -> dict[str, Any] | None:
    return None if policy is None else policy.as_json()


_PLACES = {"hosts", "path_prefix", "strip_prefix"}


def _traffic(deployment: str, entrances: tuple[Entrance, ...], rules: RequestRules) -> dict[str, Any]:
    hosts = [entrance.value for entrance in entrances if entrance.kind is EntranceKind.HOST]
    prefix = next((entrance for entrance in entrances if entrance.kind is EntranceKind.PREFIX), None)
    paths = {"path_prefix": prefix.value, "strip_prefix": prefix.strip_prefix} if prefix else {}
    dump = settings_of(deployment, entrances, rules).model_dump(mode="json", exclude_defaults=True, exclude=_PLACES)
    return {"hosts": hosts, **paths, **dump}


def _mask(before: dict[str, Any], after: dict[str, Any], *, with_values: bool) -> None:
    """Mask values so that two different ones do not both become ***."""
    was, becomes = before.get("revision", {}), after.get("revision", {})
    old, new = was.get("env", {}), becomes.get("env", {})
    for revision, env, other, mark in ((was, old, new, "before"), (becomes, new, old, "after")):
        revision.update(masked(revision))
        for name in _changed_names(env, other):
            if with_values:
                revision["env"][name] = env[name]
            elif name in other and revision["env"][name] == MASK:
                revision["env"][name] = f"{MASK} ({mark})"


def _changed_names(env: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    return (name for name, value in env.items() if other.get(name) != value)


def stored_of(connection: Connection, document: Document) -> Stored:
    """The stored values that `domain.commands.apply.expansion` compares with the document."""
    traffic = document.wanted_traffic
    entrances = traffic.entrances_of(document.deployment) if traffic else ()
    owners = owners_of(connection, entrances, document.deployment) if entrances else {}
    view = next(iter(existing_deployments(connection, [document.deployment])), None)
    if view is None:
        return Stored(owners=owners)
    name = document.revision_name
    revision = stored_revision(connection, view.id, name) if name else None
    return Stored(_stored_of(connection, view), revision, _is_restarted(connection, view, revision), owners)


def stored_revision(connection: Connection, deployment_id: UUID, name: str) -> StoredRevision | None:
    """The revision of that name with unmasked values: to be compared, and shown to nobody."""
    revision = revision_named(connection, deployment_id, name)
    return (
        StoredRevision(revision.id, revision.name, revision.spec, own_wire(connection, revision.id))
        if revision
        else None
    )


def _stored_of(connection: Connection, view: DeploymentView) -> StoredDeployment:
    policy = stored_policy(view.policy) if view.policy else None
    names = (view.current_revision, view.deploying_revision)
    row = connection.execute("SELECT traffic FROM rollouts WHERE id = %s", (view.rollout_id,)).fetchone()
    rules = rules_of_one(connection, view.id)
    reach, release = reached_at(connection, view.id).reached, known_release(row[0]) if row else None
    return StoredDeployment(view.snapshot, policy, *names, reach, view.failed_starts, release, rules)


def _is_restarted(connection: Connection, view: DeploymentView, revision: StoredRevision | None) -> bool:
    """Whether the running or coming revision was made from this one by 'rollway restart'."""
    runs = view.deploying_revision or view.current_revision
    if revision is None or runs is None or not is_restart(runs, revision.name):
        return False
    restarted = stored_revision(connection, view.id, runs)
    return restarted is not None and restarted.spec == revision.spec
