"""What runs, with another image or command: the rule of a rolling update that names no revision."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from domain.revisions.revision import RevisionSpec
from domain.revisions.stored import StoredSpec
from domain.words.errors import InvalidInputError


def changed_spec(name: str, stored: StoredSpec, image: str | None, command: Sequence[str]) -> RevisionSpec:
    """What the revision `name` runs, with this image or command instead of its own. Raises InvalidInputError.

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
