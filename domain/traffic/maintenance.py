"""Answers of the proxies themselves: during a maintenance, and when no replica answers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, TypeAdapter

USUAL_RETRY_SECONDS = 60
MOST_FAILURE_BYTES = 16_384
MOST_PAGE_BYTES = 65_536
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """Says that proxies answer a deployment's callers by 503 themselves.

    `page`: the HTML that they get; empty: a sentence. `allow`: the header by which a request gets through, in lower
    case, alone or as `name: value`; empty: none does.
    """

    since: datetime
    by: str
    reason: str = ""
    page: str = ""
    allow: str = ""
    retry_after_seconds: int = USUAL_RETRY_SECONDS

    @property
    def allowed(self) -> tuple[str, str]:
        """The header by which a request gets through, and its value; without a value any will do."""
        name, _, value = self.allow.partition(":")
        return name, value.strip()

    @property
    def public_part(self) -> "Maintenance":
        """The public part: only the name of the header, as its value may be a secret."""
        return replace(self, allow=self.allowed[0])

    @property
    def sentence(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        through = f"; who sends {self.allowed[0]} gets through" if self.allow else ""
        return f"in maintenance since {self.since:%Y-%m-%d %H:%M} UTC, by {self.by}{why}; callers get 503{through}"


def checked_header(value: str) -> str:
    """Read `name` or `name: value`. Raises ValueError."""
    name, colon, expected = value.partition(":")
    if not _HEADER.fullmatch(name) or (colon and not expected.strip()) or not expected.isprintable():
        raise ValueError(f"{value!r} must be a header, such as x-from-inside, or with its value, x-from-inside: yes")
    return f"{name.lower()}: {expected.strip()}" if colon else name.lower()


def checked_page(value: str) -> str:
    """Read a page that proxies can hold. Raises ValueError."""
    if len(value.encode()) > MOST_PAGE_BYTES:
        raise ValueError(f"must be a page of {MOST_PAGE_BYTES} bytes at most, with its styles in it")
    return value


def _by_word(value: Any) -> Any:  # noqa: ANN401  (any value of a file)
    return {str(status): page for status, page in value.items()} if isinstance(value, dict) else value


def _checked_failure_page(value: str) -> str:
    if not value.strip() or len(value.encode()) > MOST_FAILURE_BYTES:
        raise ValueError(f"must be HTML of 1 to {MOST_FAILURE_BYTES} bytes, with its styles in it")
    return value


FailurePages = Annotated[
    dict[Literal["502", "503", "504"], Annotated[str, AfterValidator(_checked_failure_page)]], BeforeValidator(_by_word)
]
"""HTML by the status with which a proxy answers when no replica has."""


def known_maintenance(raw: Mapping[str, Any] | None) -> Maintenance | None:
    """The maintenance as Postgres keeps it; fields of a newer release are skipped."""
    return None if raw is None else STORED.validate_python(raw)


STORED = TypeAdapter(Maintenance)
