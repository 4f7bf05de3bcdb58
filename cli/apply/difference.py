"""What a file would change, as the lines that differ from what is stored; values of variables are never shown."""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import yaml

from cli.apply.file import DeploymentFile
from cli.apply.plan import Known
from db.views.timeline import RevisionView
from domain.model.policy import DeploymentPolicy
from domain.revisions.revision import RevisionSpec
from domain.revisions.secrets import MASK, masked
from domain.revisions.stored import stored_spec
from domain.strategies import stored_policy
from domain.traffic.entrances import TrafficSettings
from domain.traffic.published import Entrance, EntranceKind, RequestRules


@dataclass(frozen=True, slots=True)
class Difference:
    """Of one document: the lines as `diff -u` has them, and what applying it would do, in words."""

    deployment: str
    lines: tuple[str, ...]
    would: tuple[str, ...]

    @property
    def is_one(self) -> bool:
        """Whether applying the file would change anything."""
        return bool(self.would)

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        diff = "".join(f"{line}\n" for line in self.lines)
        return {"deployment": self.deployment, "differs": self.is_one, "would": list(self.would), "diff": diff}


def difference(file: DeploymentFile, known: Known, runs: RevisionView | None, would: tuple[str, ...]) -> Difference:
    """What of the fields that the file mentions is stored otherwise. `runs`: what its revision is held against."""
    before, after = _stored(file, known, runs), _wanted(file)
    _tell_masked_values_apart(before, after)
    lines = difflib.unified_diff(
        _yaml(before), _yaml(after), f"stored/{file.deployment}", f"file/{file.deployment}", lineterm=""
    )
    return Difference(file.deployment, tuple(lines) if would else (), would)


def _wanted(file: DeploymentFile) -> dict[str, Any]:
    document: dict[str, Any] = {"deployment": file.deployment, "replicas": file.replicas}
    if file.revision is not None:
        document["revision"] = {"name": file.revision_name, **_content(file.revision.spec)}
    if file.mentions_policy:
        document["policy"] = _policy(file.parsed_policy)
    if (wanted := file.wanted_traffic) is not None:
        document["traffic"] = _traffic(wanted.entrances_of(file.deployment), wanted.rules)
    return {name: value for name, value in document.items() if value is not None or name == "policy"}


def _stored(file: DeploymentFile, known: Known, runs: RevisionView | None) -> dict[str, Any]:
    if known.deployment is None:
        return {}
    document: dict[str, Any] = {"deployment": file.deployment}
    if file.replicas is not None:
        document["replicas"] = known.deployment.desired_replicas
    if file.revision is not None and runs is not None:
        name = file.revision_name if known.is_restarted else runs.name
        document["revision"] = {"name": name, **_content(stored_spec(json.dumps(runs.spec)).spec)}
    if file.mentions_policy:
        policy = known.deployment.policy
        document["policy"] = _policy(stored_policy(policy) if policy else None)
    if file.wanted_traffic is not None and known.reached is not None:
        document["traffic"] = _traffic(known.reached.entrances, known.reached.rules)
    return document


def _content(spec: RevisionSpec) -> dict[str, Any]:
    content = spec.model_dump(mode="json", exclude_defaults=True)
    if "env" in content:
        content["env"] = dict(sorted(content["env"].items()))  # Postgres keeps no order
    return content


def _policy(policy: DeploymentPolicy | None) -> dict[str, Any] | None:
    return None if policy is None else policy.as_json()


def _traffic(entrances: tuple[Entrance, ...], rules: RequestRules) -> dict[str, Any]:
    hosts = [entrance.value for entrance in entrances if entrance.kind is EntranceKind.HOST]
    prefix = next((entrance for entrance in entrances if entrance.kind is EntranceKind.PREFIX), None)
    paths = {"path_prefix": prefix.value, "strip_prefix": prefix.strip_prefix} if prefix else {}
    settings = asdict(rules)
    settings["request_timeout_seconds"] = settings.pop("timeout_seconds")
    usual = TrafficSettings().model_dump()
    return {"hosts": hosts, **paths, **{name: value for name, value in settings.items() if value != usual[name]}}


def _tell_masked_values_apart(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Both show ***, which would hide that they differ."""
    was, becomes = before.get("revision", {}), after.get("revision", {})
    old, new = was.get("env", {}), becomes.get("env", {})
    for revision in (was, becomes):
        revision.update(masked(revision))
    for name in _changed(old, new):
        for revision, mark in ((was, "before"), (becomes, "after")):
            if revision["env"][name] == MASK:
                revision["env"][name] = f"{MASK} ({mark})"


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    return (name for name in old if name in new and old[name] != new[name])


def _yaml(document: Mapping[str, Any]) -> list[str]:
    if not document:
        return []
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=1000).splitlines()
