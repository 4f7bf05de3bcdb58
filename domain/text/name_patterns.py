"""How names look, and which of them a path has in braces."""

import re
from typing import Annotated

from pydantic import Field

NAME_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"


Name = Annotated[str, Field(pattern=NAME_PATTERN, description="lower-case letters, digits, '-' and '.', 63 at most")]


DEPLOYMENT_NAME_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,52}[a-z0-9])?$"
"""Nine characters shorter, so that the name of a revision made from it is a name too."""


DeploymentName = Annotated[
    str, Field(pattern=DEPLOYMENT_NAME_PATTERN, description="lower-case letters, digits, '-' and '.', 54 at most")
]


def named_in(path: str) -> tuple[str, ...]:
    """The fields that a path names, as `deployment` in `/v1/deployments/{deployment}/pause`."""
    return tuple(re.findall(r"{(\w+)}", path))
