"""The file that `rollway apply` reads: its grammar, and every fault by file, field and what would be right."""

import sys
from pathlib import Path
from uuid import uuid4

from pydantic import ValidationError

from api.people.asking.strict_yaml import MOST_YAML_BYTES, TOO_LONG, documents_of
from domain.commands.apply.document import MOST_DOCUMENTS, Apply, Document, disagreement
from domain.words.errors import InvalidInputError
from domain.words.text import unstorable


def read_file(name: str) -> list[Document]:
    """The documents of a YAML file, `-` for standard input. Raises InvalidInputError naming file and field."""
    shown = "standard input" if name == "-" else name
    return documents_in(_text(name, shown), shown, Path.cwd() if name == "-" else Path(name).resolve().parent)


def to_apply(name: str, *, activate: bool = True, supersede: bool = False) -> Apply:
    """The command that applies a YAML file, for who asks what it would do. Raises InvalidInputError naming the file."""
    documents = read_file(name)
    try:
        return Apply(documents=documents, request_id=str(uuid4()), activate=activate, supersede=supersede)
    except ValidationError as error:
        raise _fault(name, InvalidInputError.of(error, model=Apply).message) from None


def documents_in(text: str, shown: str, folder: Path) -> list[Document]:
    """The documents of a text that is meant for the folder. Raises InvalidInputError naming the field."""
    parts = _yaml(shown, text)
    labels = [shown] if len(parts) == 1 else [f"{shown} (document {number})" for number in range(1, len(parts) + 1)]
    documents = [_document(part, label, folder) for part, label in zip(parts, labels, strict=True)]
    if fault := disagreement(documents):
        raise _fault(shown, fault)
    return documents


def _yaml(shown: str, text: str) -> list[object]:
    try:
        parts = [part for part in documents_of(text) if part is not None]
    except ValueError as error:
        raise _fault(shown, str(error)) from None
    if not parts:
        raise _fault(shown, "holds no deployment; 'rollway apply --help' shows what belongs in it")
    if len(parts) > MOST_DOCUMENTS:
        why = (
            f"holds {len(parts):,} deployments, and {MOST_DOCUMENTS} are the most at once; divide it into several files"
        )
        raise _fault(shown, why)
    return parts


def text_of(name: str) -> str:
    """The text of a file, `-` for standard input, of which no more is read than it may have.

    Raises OSError, and ValueError saying what is wrong with it.
    """
    if name == "-":
        content = sys.stdin.buffer.read(MOST_YAML_BYTES + 1)
    else:
        with Path(name).open("rb") as file:
            content = file.read(MOST_YAML_BYTES + 1)
    if len(content) > MOST_YAML_BYTES:
        raise ValueError(TOO_LONG)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("is no UTF-8 text") from None


def _text(name: str, shown: str) -> str:
    try:
        return text_of(name)
    except OSError as error:
        raise _fault(shown, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise _fault(shown, str(error)) from None


def _document(raw: object, label: str, folder: Path) -> Document:
    if not isinstance(raw, dict):
        raise _fault(label, "must be fields such as 'deployment: web'; 'rollway apply --help' shows them")
    if {"apiVersion", "kind"} <= raw.keys():
        raise _fault(label, "is a manifest of Kubernetes; 'rollway apply --help' shows what a file has here")
    if "services" in raw and "deployment" not in raw:
        raise _fault(label, "is a file of Docker Compose; 'rollway apply --help' shows what a file has here")
    if fault := unstorable(raw):
        raise _fault(label, ": ".join(fault))
    try:
        parsed = Document.model_validate(raw)
    except ValidationError as error:
        raise _fault(label, InvalidInputError.of(error, model=Document).message) from None
    return _in_folder_of_file(parsed, folder)


def _in_folder_of_file(parsed: Document, folder: Path) -> Document:
    """A process runs in the folder of the file, or in one that is meant from there; null: where the worker runs."""
    revision = parsed.revision
    if revision is None or revision.runtime != "process":
        return parsed
    given = revision.working_directory
    if given is None and "working_directory" in revision.model_fields_set:
        return parsed
    absolute = str(folder / (given or ""))
    return parsed.model_copy(update={"revision": revision.model_copy(update={"working_directory": absolute})})


def _fault(where: str, message: str) -> InvalidInputError:
    return InvalidInputError(f"{where}: {message}", file=where)
