"""Refusals, each with a code that survives JSON and a sentence with the right value; many rooms raise these."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pydantic import BaseModel, ValidationError

_MOST_FAULTS = 20
_DOCUMENTS = "documents"
FieldPath = tuple[int | str, ...]
"""The place of a field in lists and fields, such as ("documents", 0, "replicas")."""


@dataclass(frozen=True, slots=True)
class FieldFault:
    """A wrong field, and what is wrong with it."""

    path: FieldPath
    what: str

    def sentence(self, line: int | None = None) -> str:
        """E.g. "document 1, line 4, replicas: must be a whole number". `line`: of the text that people have written."""
        is_in_document = self.path[:1] == (_DOCUMENTS,) and len(self.path) > 1
        document, inner = (self.path[:2], self.path[2:]) if is_in_document else ((), self.path)
        places = (_in_words(document), "" if line is None else f"line {line}", _in_words(inner))
        place = ", ".join(filter(None, places))
        return f"{place}: {self.what}" if place else self.what


def _in_words(path: FieldPath) -> str:
    """The path for people, counted from one: ("rules", 0, "step") is "rule 1, step"."""
    words = ""
    for part in path:
        if isinstance(part, int):
            words = f"{words.removesuffix('s')} {part + 1},"
        elif part:
            words += f" {part}" if words.endswith(",") else f".{part}"
    return words.strip("., ")


def path_in(dotted: str) -> FieldPath:
    """The path that a field's name means: ("documents", 0, "replicas") for "documents.0.replicas"."""
    return tuple(int(part) if part.isdecimal() else part for part in dotted.split(".")) if dotted else ()


class RollwayError(Exception):
    """A refusal: `code` for programs, the message for people, `detail` with the values that matter.

    The code is the name of the class, such as stale_version, unless the class gives another one. The reference lists
    all of them, so that none changes unseen.
    """

    code: ClassVar[str] = "error"

    def __init_subclass__(cls) -> None:
        if "code" not in cls.__dict__:
            cls.code = re.sub("(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).lower()

    def __init__(self, message: str, **detail: object) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail

    def as_json(self) -> dict[str, Any]:
        """JSON-serialisable form: {"code", "message", "detail"}."""
        return {"code": self.code, "message": self.message, "detail": {k: str(v) for k, v in self.detail.items()}}


class InvalidInputError(RollwayError):
    """A field is missing or wrong; the message names it and a right value."""

    faults: tuple[FieldFault, ...] = ()
    """The wrong fields; empty where the message alone says what is wrong."""

    @classmethod
    def of(cls, error: "ValidationError", where: str = "", model: "type[BaseModel] | None" = None) -> Self:
        """The faults that Pydantic found, each with its field's path; the values themselves are left out.

        `model`: of what was read; with it the fault of an unknown field lists the known ones.
        """
        from domain.text.validation_errors import faults_of  # noqa: PLC0415 -- Pydantic, which most refusals need not

        raw = error.errors()
        paths = [fault["loc"] for fault in raw]
        deepest = [each for each in raw if each["type"] != "too_short" or not _is_above(each["loc"], paths)]
        return cls._of([fault for each in deepest for fault in faults_of(each, model, path_in(where))])

    @classmethod
    def at(cls, field: str, what: str) -> Self:
        """The fault of a field, by its path with dots; empty for the whole."""
        return cls._of([FieldFault(path_in(field), what)])

    def with_lines(self, line_of: "Callable[[FieldPath], int | None]") -> Self:
        """The refusal, each fault with its line in the text that people have written."""
        return self._of(self.faults, line_of) if self.faults else self

    @classmethod
    def _of(cls, faults: "Sequence[FieldFault]", line_of: "Callable[[FieldPath], int | None]" = lambda _: None) -> Self:
        sentences = [fault.sentence(line_of(fault.path)) for fault in faults[:_MOST_FAULTS]]
        if len(faults) > _MOST_FAULTS:
            sentences.append(f"and {len(faults) - _MOST_FAULTS} more")
        error = cls("; ".join(dict.fromkeys(sentences)), field=".".join(map(str, faults[0].path)))
        error.faults = tuple(faults)
        return error


def _is_above(path: tuple[int | str, ...], others: "Iterable[tuple[int | str, ...]]") -> bool:
    """Whether another fault is deeper: an element with a fault is left out of its list, which is no second fault."""
    return any(len(other) > len(path) and other[: len(path)] == path for other in others)


class UnreadableError(RollwayError):
    """A row has a value that only a newer release understands."""

    @classmethod
    def of(cls, what: str, word: object) -> Self:
        """The error for a stored `word` that this release does not know as `what`, such as "status of a replica"."""
        return cls(f"this release of Rollway knows no {what} {str(word)!r}; a newer one wrote it")


class TooLargeError(InvalidInputError):
    """A command has more bytes than a command may have; the message names its largest part."""

    @classmethod
    def of_size(cls, size: int, most: int, part: str) -> Self:
        """The refusal; sizes in bytes of JSON."""
        return cls.at(part, f"the command has {size:,} bytes, and {most:,} are the most; put what is large into a file")


class UnavailableError(RollwayError):
    """Postgres did not answer for as long as we waited."""


class DeploymentNotFoundError(RollwayError):
    """No deployment has that name."""


class RevisionNotFoundError(RollwayError):
    """The deployment has no revision of that name."""


class RouteNotFoundError(RollwayError):
    """No route has that id."""


class RolloutNotFoundError(RollwayError):
    """No rollout has that id."""

    @classmethod
    def of_deployment(cls, name: str) -> Self:
        """The error for a deployment that has had no rollout."""
        return cls(f"{name} has had no rollout yet", deployment=name)


class WrongStateError(RollwayError):
    """The deployment's state does not allow this command; the message names the states that do."""

    @classmethod
    def of_leaving(cls, deployment: str, state: object, allowed: str) -> Self:
        """The refusal to change a deployment that is being destroyed; `allowed`: the actions possible before."""
        message = f"{deployment} is {state}; {allowed} until it is destroyed"
        return cls(message, deployment=deployment, state=state)
