"""Callers who are chosen for a canary by what their requests say: a header, or a cookie."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

_OF_THE_PROXY = ("cookie", "host", "connection", "content-length", "transfer-encoding", "upgrade")


class Chosen(BaseModel):
    """Requests with this header, or with this cookie: of whichever value, or of this one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    header: str | None = Field(default=None, pattern=r"^[A-Za-z0-9-]{1,64}$")
    """The name of the header, in large or small letters, such as x-beta."""
    cookie: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,64}$")
    """The name of the cookie, such as beta."""
    value: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"^[A-Za-z0-9 ._~/+:@%=-]*$")
    """The value that it has. Left out: any."""

    @model_validator(mode="after")
    def _is_by_one(self) -> Self:
        if (self.header is None) == (self.cookie is None):
            raise ValueError("must have a header or a cookie, and not both, such as {header: x-beta}")
        if self.header is not None and self.header.lower() in _OF_THE_PROXY:
            raise ValueError(f"header: {self.header} is the proxy's own; choose one that callers send, or a cookie")
        return self

    @property
    def words(self) -> str:
        """Who is chosen: callers with the header x-beta: yes."""
        kind, name = ("header", self.header) if self.header else ("cookie", self.cookie)
        said = "" if self.value is None else f"{':' if self.header else '='}{' ' if self.header else ''}{self.value}"
        return f"callers with the {kind} {name}{said}"


def known_chosen(stored: Mapping[str, Any] | None) -> Chosen | None:
    """Return who was chosen, as it was stored; nobody by what only a newer release knows."""
    try:
        return None if stored is None else Chosen.model_validate(stored)
    except ValidationError:
        return None
