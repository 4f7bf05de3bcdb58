"""The file that `rollway apply` reads: its grammar, and every fault by file, field and what would be right."""

import sys
from pathlib import Path

from pydantic import ValidationError

from api.people.asking.strict_yaml import documents_of
from domain.commands.apply.document import Document, disagreement
from domain.words.errors import InvalidInputError
from domain.words.text import unstorable


def read_file(name: str) -> list[Document]:
    """The documents of a YAML file, `-` for standard input. Raises InvalidInputError naming file and field."""
    text, folder = _text(name)
    shown = "standard input" if name == "-" else name
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
    return parts


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


def _document(raw: object, label: str, folder: Path) -> Document:
    if not isinstance(raw, dict):
        raise _fault(label, "must be fields such as 'deployment: web'; 'rollway apply --help' shows them")
    if fault := unstorable(raw):
        raise _fault(label, ": ".join(fault))
    try:
        parsed = Document.model_validate(raw)
    except ValidationError as error:
        raise _fault(label, InvalidInputError.of(error, model=Document).message) from None
    return _with_absolute_folder(parsed, folder)


def _with_absolute_folder(parsed: Document, folder: Path) -> Document:
    """A relative working_directory starts at the folder of the file, wherever the workers run."""
    if parsed.revision is None or parsed.revision.working_directory is None:
        return parsed
    absolute = str(folder / parsed.revision.working_directory)
    revision = parsed.revision.model_copy(update={"working_directory": absolute})
    return parsed.model_copy(update={"revision": revision})


def _fault(where: str, message: str) -> InvalidInputError:
    return InvalidInputError(f"{where}: {message}", file=where)
