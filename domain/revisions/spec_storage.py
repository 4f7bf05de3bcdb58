"""A revision's spec as this release reads it, whichever release wrote it."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from domain.revisions.revision import MOST_SECONDS, RevisionSpec
from domain.revisions.runtime_spec import ExternalSpec
from domain.revisions.secret_refs import MASK, names_masked
from domain.text.errors import InvalidInputError

Spec = TypeVar("Spec", bound=RevisionSpec)


@dataclass(frozen=True, slots=True)
class StoredSpec:
    """`unreadable`: the sentence that says what this release cannot read; the spec is then just what ends a replica."""

    spec: RevisionSpec
    unreadable: str | None = None


def stored_spec(text: str) -> StoredSpec:
    """The spec in a revision's JSON.

    fields that this release does not know   -> left out
    values that it does not take             -> unreadable; to end a replica its runtime, times and whom to ask are kept
    """
    try:
        return StoredSpec(RevisionSpec.model_validate_json(text, extra="ignore"))
    except ValidationError as error:
        fault = InvalidInputError.of(error, "revision")
    raw = json.loads(text)
    spec = _what_ends_it(raw if isinstance(raw, dict) else {})
    return StoredSpec(spec, f"this release of Rollway cannot read its revision: {fault}")


def is_same(stored: Mapping[str, Any], spec: RevisionSpec) -> bool:
    """Whether a stored spec says what this one does. What the release that wrote it did not know has its default."""
    try:
        return RevisionSpec.model_validate(stored) == spec
    except ValidationError:
        return False


def with_values_of(stored: Mapping[str, Any], spec: Spec) -> Spec:
    """The spec with the value that the stored revision has wherever it says ***; what that one lacks stays ***."""
    if not names_masked(spec.env):
        return spec
    known = stored_spec(json.dumps(stored)).spec.env
    env = {name: known.get(name, value) if value == MASK else value for name, value in spec.env.items()}
    return spec.model_copy(update={"env": env})


def _what_ends_it(raw: Mapping[str, Any]) -> RevisionSpec:
    """Not validated: its runtime may be one that this release does not have."""
    known: dict[str, Any] = {"runtime": str(raw.get("runtime", "process"))}
    for name in ("drain_seconds", "drain_max_seconds", "stop_grace_seconds"):
        if isinstance(raw.get(name), int | float):
            known[name] = min(max(0.0, raw[name]), MOST_SECONDS)
    if raw.get("drain") == "fixed":
        known["drain"] = "fixed"
    with suppress(ValidationError):
        known["external"] = ExternalSpec.model_validate(raw.get("external"), extra="ignore")
    return RevisionSpec.model_construct(**known)
