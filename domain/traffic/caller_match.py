"""Callers known by a header or a cookie: for a canary, and for staying with one replica."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

_OF_THE_PROXY = ("cookie", "host", "connection", "content-length", "transfer-encoding", "upgrade")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
"""The names of headers and of cookies, by RFC 9110, 5.6.2."""


def _checked_name(value: str) -> str:
    if not _TOKEN.fullmatch(value):
        raise ValueError(f"{value!r} must be a name of letters, digits and '-' or '_', such as rollway-replica")
    return value


def _refuse_unless_one(cookie: str | None, header: str | None) -> None:
    if (cookie is None) == (header is None):
        raise ValueError("must name either a cookie or a header, such as {cookie: rollway-replica}")
    if header in _OF_THE_PROXY:
        raise ValueError(f"header: {header} is the proxy's own; choose one that callers send, or a cookie")


_Cookie = Annotated[str, AfterValidator(_checked_name)]
_Header = Annotated[str, AfterValidator(_checked_name), AfterValidator(str.lower)]


class Chosen(BaseModel):
    """Requests with this header or this cookie; with `value` only those that have it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    header: _Header | None = None
    """The name of the header, such as x-beta; case does not matter."""
    cookie: _Cookie | None = None
    """The name of the cookie, such as beta."""
    value: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"^[A-Za-z0-9 ._~/+:@%=-]*$")
    """The value that it has. Left out: any."""

    @model_validator(mode="after")
    def _is_by_one(self) -> Self:
        _refuse_unless_one(self.cookie, self.header)
        return self

    @property
    def words(self) -> str:
        """The matching callers in words, such as "callers with the header x-beta: yes"."""
        name, sign = (f"header {self.header}", ": ") if self.header else (f"cookie {self.cookie}", "=")
        return f"callers with the {name}{'' if self.value is None else f'{sign}{self.value}'}"


def known_chosen(raw: Mapping[str, Any] | None) -> Chosen | None:
    """The stored match of callers; None if only a newer release can read it."""
    try:
        return None if raw is None else Chosen.model_validate(raw)
    except ValidationError:
        return None


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Sticky:
    """The way proxies recognise a caller: either a cookie or a header."""

    cookie: _Cookie | None = None
    """A cookie that proxies give to callers without it, for a week; replicas must not set a cookie of this name."""
    header: _Header | None = None
    """A header of requests, such as x-user; a request without it goes to any replica."""
    max_load: float | None = Field(default=None, ge=1, le=100)
    """A replica gets no more requests at this multiple of the others' average under way; left out: no limit."""

    @model_validator(mode="after")
    def _has_either(self) -> Self:
        _refuse_unless_one(self.cookie, self.header)
        return self

    @property
    def description(self) -> str:
        """The header or cookie, in words."""
        return f"cookie {self.cookie}" if self.cookie else f"header {self.header}"


STICKY = TypeAdapter(Sticky)


def stored_sticky(settings: Sticky) -> dict[str, Any]:
    raw: dict[str, Any] = STICKY.dump_python(settings, mode="json", exclude_defaults=True)
    return raw


def known_sticky(raw: Mapping[str, Any] | None) -> Sticky | None:
    """The settings as they were stored; None where a newer release knows callers by something else."""
    if raw is None or not (raw.get("cookie") or raw.get("header")):
        return None
    return Sticky(raw.get("cookie"), raw.get("header"), raw.get("max_load"))
