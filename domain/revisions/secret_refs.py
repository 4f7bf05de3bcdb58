"""References to secrets in a revision's `env`, whether a host can have them, and the masking of an environment."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from posixpath import isabs
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from domain.text.errors import RollwayError
from domain.text.storable import DEPLOYMENT_NAME_PATTERN, storable

MASK = "***"
"""Shown to people in place of a value."""

DEPLOYMENT = "{deployment}"
"""The placeholder, in a host's allowed paths, for the name of the deployment that refers to a secret."""

MOST_CHARACTERS = 1000
MOST_SECRETS = 100
"""The most secrets of a revision: hosts look at each, for every asker."""
_EXAMPLE = "{secret: 'file:/run/secrets/db'}"


class MissingSecretError(RollwayError):
    """No host that is up can have all secrets of the revision; the message has each host's reason."""


def reference_text(text: str) -> str:
    """The text of a reference, unchanged. Raises ValueError with a right example.

    file:/run/secrets/db                      a file of the host
    env:DB_PASSWORD                           a variable of the host's file of secrets
    command:/usr/bin/vault read -field=x y    what a program of the host prints; no shell looks at it
    """
    kind, _, what = text.partition(":")
    if len(text) > MOST_CHARACTERS or storable(text) != text or "\n" in text:
        raise ValueError(f"a reference to a secret is one line of {MOST_CHARACTERS} characters at most")
    match kind:
        case "file" if isabs(what) and not what.endswith("/") and ".." not in what.split("/"):
            return text
        case "file":
            raise ValueError("a secret's file must be an absolute path without '..', such as 'file:/run/secrets/db'")
        case "env" if what and "=" not in what:
            return text
        case "env":
            raise ValueError("a secret's variable must have a name without '=', such as 'env:DB_PASSWORD'")
        case "command" if isabs(words_of(what)[0]):
            return text
        case "command":
            raise ValueError(
                "a secret's command must begin with an absolute path, such as 'command:/usr/bin/vault read x'"
            )
    raise ValueError("a reference to a secret begins with 'file:', 'env:' or 'command:'")


def words_of(command: str) -> list[str]:
    """A command's program and arguments, as a shell would divide them; [""] when it has no words or an open quote."""
    try:
        return shlex.split(command) or [""]
    except ValueError:
        return [""]


def filled_in(allowed: str, deployment: str) -> str | None:
    """The paths that a host allows for a deployment; None if there are none.

    /run/secrets                 -> /run/secrets, for every deployment
    /run/secrets/{deployment}    -> /run/secrets/web; a name has no slash and is not "..", so nobody gets to another's
    """
    if DEPLOYMENT not in allowed:
        return allowed
    return allowed.replace(DEPLOYMENT, deployment) if re.fullmatch(DEPLOYMENT_NAME_PATTERN, deployment) else None


Reference = Annotated[
    str,
    Field(description="file:/absolute/path, env:NAME, or command:/absolute/program with its arguments"),
    AfterValidator(reference_text),
]


class SecretReference(BaseModel):
    """A secret that is read on the host that runs the replica, each time it starts one, and kept nowhere."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    secret: Reference
    """The place where the host that runs the replica finds the value."""

    @property
    def kind(self) -> str:
        """The part before the colon: file, env or command."""
        return self.secret.partition(":")[0]

    @property
    def what(self) -> str:
        """The part behind it: a path, a name, or a command."""
        return self.secret.partition(":")[2]


def _text_or_reference(value: object) -> object:
    """Report a single clear fault instead of one for each form that a value may have."""
    match value:
        case str() | SecretReference():
            return value
        case {"secret": str(text), **others} if not others:
            return SecretReference(secret=reference_text(text))
        case int() | float():
            raise ValueError("must be text; put it in quotes")
    raise ValueError(f"must be a text, or a reference to a secret such as {_EXAMPLE}")


EnvValue = Annotated[str | SecretReference, BeforeValidator(_text_or_reference)]
"""A variable of a revision: its value, or the place where its host finds the value."""


def references_of(env: Mapping[str, str | SecretReference]) -> dict[str, SecretReference]:
    return {name: value for name, value in env.items() if isinstance(value, SecretReference)}


def names_masked(env: Mapping[str, str | SecretReference]) -> list[str]:
    """The variables whose values are not shown."""
    return [name for name, value in env.items() if value == MASK]


def masked(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A revision's spec, as JSON has it, for people: names of variables and references as they are, values masked.

    {"env": {"A": "1", "B": {"secret": "env:B"}}}   -> {"env": {"A": "***", "B": {"secret": "env:B"}}}
    """
    if "env" not in spec:
        return dict(spec)
    env = spec["env"]
    if not isinstance(env, dict):
        return {**spec, "env": MASK}
    return {**spec, "env": {name: _masked(value) for name, value in env.items()}}


def differ_unseen(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The variables of two specs, as JSON has them, whose values differ and look alike, as both are masked."""
    old, new = before.get("env"), after.get("env")
    if not isinstance(old, dict) or not isinstance(new, dict):
        return []
    both = sorted(old.keys() & new.keys())
    return [name for name in both if old[name] != new[name] and _masked(old[name]) == _masked(new[name])]


def _masked(value: object) -> object:
    match value:
        case {"secret": str(text), **others} if not others:
            return {"secret": text}
    return MASK


_MOST_HOSTS = 5
_NOT_ANSWERED = "it has not answered yet"


@dataclass(frozen=True, slots=True)
class SecretCheck:
    """A live host's answer about one reference. `fault`: why it cannot have that secret; None: it can.

    `is_answered`: whether the host has looked since it was asked.
    """

    host: str
    reference: str
    is_answered: bool
    fault: str | None = None


def passed_over(revision: str, checks: Iterable[SecretCheck]) -> Mapping[str, str]:
    """The hosts that get no replicas of the revision, each with the reason. Raises MissingSecretError if all do.

    the revision refers to nothing, or no host is up   -> nobody is asked; a start that fails says why
    a host can have all that it refers to              -> the others are passed over
    no host can                                        -> refused, with what each of them lacks
    """
    lacking: dict[str, list[str]] = defaultdict(list)
    hosts = set()
    for check in checks:
        hosts.add(check.host)
        if not check.is_answered or check.fault is not None:
            lacking[check.host].append(f"{check.reference} ({check.fault if check.is_answered else _NOT_ANSWERED})")
    reasons = {host: ", ".join(faults) for host, faults in sorted(lacking.items())}
    if hosts and hosts == reasons.keys():
        sentences = [f"host {host} lacks {reason}" for host, reason in list(reasons.items())[:_MOST_HOSTS]]
        if len(reasons) > _MOST_HOSTS:
            sentences.append(f"and so {len(reasons) - _MOST_HOSTS} more")
        raise MissingSecretError(
            f"no host can run {revision}: {'; '.join(sentences)}", revision=revision, hosts=", ".join(reasons)
        )
    return reasons
