"""The file that `rollway apply` reads: its grammar, and every fault by file, field and what would be right."""

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cli.strict_yaml import documents_of
from domain.commands.base import Replicas
from domain.model.policy import DeploymentPolicy
from domain.revisions.revision import RevisionSpec, revision_name
from domain.strategies import parse_policy
from domain.traffic.entrances import TrafficSettings
from domain.traffic.published import Entrance
from domain.words.errors import InvalidInputError
from domain.words.names import DeploymentName, Name
from domain.words.text import unstorable


class RevisionSection(RevisionSpec):
    """What to run."""

    name: Name | None = None
    """Left out: `<deployment>-<8 hex digits>` of its content."""

    @property
    def spec(self) -> RevisionSpec:
        """The content, which the name is no part of."""
        return RevisionSpec.model_validate(self.model_dump(exclude={"name"}))


class DeploymentFile(BaseModel):
    """One document. What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    deployment: DeploymentName
    """Its name."""
    replicas: Replicas | None = None
    """How many; 1 at first."""
    revision: RevisionSection | None = None
    """What to run."""
    policy: dict[str, Any] | None = None
    """How it is rolled out: `strategy`, `spec` and `limits`; null: no rollouts, replicas are replaced one by one."""
    traffic: TrafficSettings | None = None
    """Where it is reached; null: by what a new deployment gets, hosts NAME and NAME.localhost and path /NAME/."""
    activate: bool = True
    """false: the revision is only registered."""

    @property
    def revision_name(self) -> str | None:
        """The name that the revision has or gets."""
        if self.revision is None:
            return None
        return self.revision.name or revision_name(self.deployment, self.revision.spec)

    @property
    def mentions_policy(self) -> bool:
        """Whether the file says anything about the policy, be it null."""
        return "policy" in self.model_fields_set

    @property
    def wanted_traffic(self) -> TrafficSettings | None:
        """Where it shall be reached; None when the file does not say."""
        return (self.traffic or TrafficSettings()) if "traffic" in self.model_fields_set else None

    @property
    def asked_entrances(self) -> tuple[Entrance, ...]:
        """The entrances that the file names."""
        if self.traffic is None or self.traffic.is_default:
            return ()
        return self.traffic.entrances_of(self.deployment)

    @property
    def parsed_policy(self) -> DeploymentPolicy | None:
        """Raises InvalidInputError, which `read_file` has ruled out."""
        return None if self.policy is None else parse_policy(self.policy)


def read_file(name: str) -> list[DeploymentFile]:
    """The documents of a YAML file, `-` for standard input. Raises InvalidInputError naming file and field."""
    text, folder = _text(name)
    shown = "standard input" if name == "-" else name
    parts = _yaml(shown, text)
    labels = [shown] if len(parts) == 1 else [f"{shown} (document {number})" for number in range(1, len(parts) + 1)]
    documents = [_document(part, label, folder) for part, label in zip(parts, labels, strict=True)]
    if repeated := _first_repeated(document.deployment for document in documents):
        raise _fault(shown, f"deployment: {repeated} stands in two documents; give it one")
    if repeated := _first_repeated(entrance.value for document in documents for entrance in document.asked_entrances):
        raise _fault(shown, f"traffic: {repeated} stands in two documents; only one deployment can be reached by it")
    return documents


def _yaml(shown: str, text: str) -> list[object]:
    try:
        parts = [part for part in documents_of(text) if part is not None]
    except ValueError as error:
        raise _fault(shown, str(error)) from None
    if not parts:
        raise _fault(shown, "holds no deployment; 'rollway apply --help' shows what belongs in it")
    return parts


def _first_repeated(values: Iterable[str]) -> str | None:
    return next((value for value, count in Counter(values).items() if count > 1), None)


def _text(name: str) -> tuple[str, Path]:
    try:
        if name == "-":
            return sys.stdin.read(), Path.cwd()
        path = Path(name)
        return path.read_text(encoding="utf-8"), path.resolve().parent
    except OSError as error:
        raise _fault(name, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _fault(name, "is no UTF-8 text") from None


def _document(raw: object, label: str, folder: Path) -> DeploymentFile:
    if not isinstance(raw, dict):
        raise _fault(label, "must be fields such as 'deployment: web'; 'rollway apply --help' shows them")
    if fault := unstorable(raw):
        raise _fault(label, ": ".join(fault))
    try:
        parsed = DeploymentFile.model_validate(raw)
        if parsed.policy is not None:
            parse_policy(parsed.policy)
    except ValidationError as error:
        raise _fault(label, InvalidInputError.of(error, model=DeploymentFile).message) from None
    except InvalidInputError as error:
        raise _fault(label, error.message) from None
    return _with_absolute_folder(parsed, folder)


def _with_absolute_folder(parsed: DeploymentFile, folder: Path) -> DeploymentFile:
    """A relative working_directory starts at the folder of the file, wherever the workers run."""
    if parsed.revision is None or parsed.revision.working_directory is None:
        return parsed
    absolute = str(folder / parsed.revision.working_directory)
    revision = parsed.revision.model_copy(update={"working_directory": absolute})
    return parsed.model_copy(update={"revision": revision})


def _fault(where: str, message: str) -> InvalidInputError:
    return InvalidInputError(f"{where}: {message}", file=where)
