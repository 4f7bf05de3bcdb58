"""The patterns of names."""

from typing import Annotated

from pydantic import Field

NAME_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"


Name = Annotated[str, Field(pattern=NAME_PATTERN, description="lower-case letters, digits, '-' and '.', 63 at most")]


DEPLOYMENT_NAME_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,52}[a-z0-9])?$"
"""Nine characters shorter, so that the name of a revision made from it is a name too."""


DeploymentName = Annotated[
    str, Field(pattern=DEPLOYMENT_NAME_PATTERN, description="lower-case letters, digits, '-' and '.', 54 at most")
]
