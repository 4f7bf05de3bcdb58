"""Each refusal has a code that survives JSON, and a sentence with the right value; many rooms raise these."""

import re
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel, ValidationError

_MOST_FAULTS = 20


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

    @classmethod
    def of(cls, error: "ValidationError", where: str = "", model: "type[BaseModel] | None" = None) -> Self:
        """The faults that Pydantic found, each with its field's path; the values themselves are left out.

        `model`: what was to be read; with it a wrong field is told which ones there are.
        """
        from domain.text.validation_errors import path_of, sentence_of  # noqa: PLC0415 -- Pydantic, which most refusals need not

        faults = error.errors()
        paths = [fault["loc"] for fault in faults]
        faults = [each for each in faults if each["type"] != "too_short" or not _is_above(each["loc"], paths)]
        sentences = [sentence_of(fault, model, where) for fault in faults[:_MOST_FAULTS]]
        if len(faults) > _MOST_FAULTS:
            sentences.append(f"and {len(faults) - _MOST_FAULTS} more")
        return cls("; ".join(dict.fromkeys(sentences)), field=path_of(faults[0], where))


def _is_above(path: tuple[int | str, ...], others: "Iterable[tuple[int | str, ...]]") -> bool:
    """Whether another fault lies deeper: an element with a fault is left out of its list, which is no second fault."""
    return any(len(other) > len(path) and other[: len(path)] == path for other in others)


class UnreadableError(RollwayError):
    """A row has a value that only a newer release understands."""

    @classmethod
    def of(cls, what: str, word: object) -> Self:
        """For a `word` that is no `what`, such as "status of a replica", to this release."""
        return cls(f"this release of Rollway knows no {what} {str(word)!r}; a newer one wrote it")


class TooLargeError(InvalidInputError):
    """A command has more bytes than a command may have; the message names its largest part."""

    @classmethod
    def of_size(cls, size: int, most: int, part: str) -> Self:
        """The refusal; sizes in bytes, as JSON."""
        prefix = f"{part}: " if part else ""
        message = f"{prefix}the command has {size:,} bytes, and {most:,} are the most; put what is large into a file"
        return cls(message, field=part)


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
        """The deployment has had none."""
        return cls(f"{name} has had no rollout yet", deployment=name)


class WrongStateError(RollwayError):
    """The deployment's state does not allow this command; the message names the states that do."""

    @classmethod
    def of_leaving(cls, deployment: str, state: object, allowed: str) -> Self:
        """The refusal to change a deployment that is being destroyed; `allowed`: the actions possible before."""
        message = f"{deployment} is {state}; {allowed} until it is destroyed"
        return cls(message, deployment=deployment, state=state)
