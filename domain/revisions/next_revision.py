"""What runs, with another image or command, or once more: the next revision of one that is not named."""

import re
from collections.abc import Collection, Sequence
from typing import Any

from pydantic import ValidationError

from domain.revisions.revision import RevisionSpec
from domain.revisions.spec_storage import StoredSpec
from domain.text.errors import InvalidInputError


def changed_spec(name: str, stored: StoredSpec, image: str | None, command: Sequence[str]) -> RevisionSpec:
    """Return what the revision `name` runs, but with this image or command. Raises InvalidInputError.

    what this release cannot read              -> error
    an image for what does not run in a container -> error
    otherwise                                   -> everything else as it was
    """
    if stored.unreadable:
        raise InvalidInputError(f"{name}: {stored.unreadable}", field="revision")
    change: dict[str, Any] = {"command": list(command)} if command else {}
    if image is not None:
        if stored.spec.docker is None:
            message = f"image: {name} runs with runtime {stored.spec.runtime!r}, which has no image"
            raise InvalidInputError(f"{message}; a command changes what it runs", field="image")
        change["docker"] = {**stored.spec.docker.model_dump(mode="json"), "image": image}
    try:
        return RevisionSpec.model_validate({**stored.spec.model_dump(mode="json"), **change})
    except ValidationError as error:
        raise InvalidInputError.of(error, model=RevisionSpec) from None


_RESTART = re.compile(r"\.r([1-9][0-9]*)$")
_MOST = 63
"""Letters in the name of a revision."""


def restarted_name(name: str, taken: Collection[str]) -> str:
    """The next name that is not taken yet; one that is too long is cut."""
    found = _RESTART.search(name)
    number = int(found[1]) + 1 if found else 2
    while (next_name := _numbered(name, number)) in taken:
        number += 1
    return next_name


def is_restart(name: str, of: str) -> bool:
    """Whether `name` is what a restart of the revision `of` would be called."""
    found = _RESTART.search(name)
    return found is not None and name == _numbered(of, int(found[1])) != of


def _numbered(name: str, number: int) -> str:
    suffix = f".r{number}"
    return _RESTART.sub("", name)[: _MOST - len(suffix)].rstrip("-.") + suffix
