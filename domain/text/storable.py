"""Text from elsewhere, made fit to be stored and shown; and the patterns of names."""

import re
from collections.abc import Iterator
from math import isfinite
from typing import Annotated

from pydantic import Field

DEEPEST = 32
"""The deepest nesting of lists and fields in data from elsewhere; commands have five levels."""

# a tab and a line's end are the only control characters that mean something in a reason or in a log; those that turn
# the direction of writing show a text otherwise than it is
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")


def storable(text: str) -> str:
    r"""The text for Postgres, UTF-8 and a terminal: characters that they refuse or obey become U+FFFD.

    Postgres stores no NUL, UTF-8 has no lone surrogate, and a terminal obeys control characters.

    "bye\0bye"      -> "bye\ufffdbye"
    "50%\r100%\r\n" -> "50%\n100%\n"
    """
    return _UNFIT.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def unstorable(value: object) -> tuple[str, str] | None:
    """The first part of data that cannot be stored, and why: ("spec.env.KEY", "a text cannot ..."). None: all can.

    `value`: what JSON or YAML became: a text, a number, None, or lists and fields of them.
    """
    return _unstorable(value, "", 0, {})


def _unstorable(value: object, path: str, depth: int, depths: dict[int, int]) -> tuple[str, str] | None:
    """`depths`: how deep each list was met before, since YAML's aliases put one into a billion places."""
    if why := _fault_of(value, depth):
        return path, why
    if isinstance(value, dict | list | tuple):
        if depths.get(id(value), -1) >= depth:
            return None
        depths[id(value)] = depth
    inner = ((f"{path}.{storable(key)}".lstrip("."), item) for key, item in _inside(value))
    return next((fault for key, item in inner if (fault := _unstorable(item, key, depth + 1, depths))), None)


def _inside(value: object) -> Iterator[tuple[str, object]]:
    """The items by their names or numbers, and each name as a text of its own."""
    match value:
        case dict():
            yield from ((str(key), item) for key, item in value.items())
            yield from ((key, key) for key in value if isinstance(key, str))
        case list() | tuple():
            yield from ((str(number), item) for number, item in enumerate(value))


def _fault_of(value: object, depth: int) -> str | None:
    match value:
        case dict() | list() | tuple() if depth > DEEPEST:
            return f"is nested more than {DEEPEST} levels deep; make it flatter"
        case str() if "\0" in value:
            return "a text cannot contain the character NUL; leave it out"
        case str() if _HALF.search(value):
            return "a text cannot contain half of a surrogate pair; write the whole character"
        case float() if not isfinite(value):
            return "must be a finite number"
        case _:
            return None


NAME_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"


Name = Annotated[str, Field(pattern=NAME_PATTERN, description="lower-case letters, digits, '-' and '.', 63 at most")]


DEPLOYMENT_NAME_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,52}[a-z0-9])?$"
"""Nine characters shorter, so that the name of a revision made from it is a name too."""


DeploymentName = Annotated[
    str, Field(pattern=DEPLOYMENT_NAME_PATTERN, description="lower-case letters, digits, '-' and '.', 54 at most")
]
