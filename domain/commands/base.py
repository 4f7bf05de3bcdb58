"""What every command carries."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from domain.words.names import DeploymentName

REQUEST_ID_LENGTH = 200
MAX_REPLICAS = 10_000
Replicas = Annotated[int, Field(ge=0, le=MAX_REPLICAS, strict=True)]


class Command(BaseModel):
    """What every command carries."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    task: ClassVar[str]
    answer: ClassVar[type[BaseModel]]
    """What `result` is in what the task answers."""

    request_id: str = Field(min_length=1, max_length=REQUEST_ID_LENGTH)
    """Sent again with the same id, nothing is done twice, and the first answer comes back."""
    actor: str = Field(default="unknown", min_length=1, max_length=200)
    """Who asks, for the history; where commands are signed, it is the sender's name."""
    reason: str = Field(default="", max_length=1000)
    """Why, for the history."""
    schema_version: Literal[1] = 1
    """Of the payload."""


class DeploymentCommand(Command):
    """A command to one deployment."""

    deployment: DeploymentName
    """Its name."""
    expected_version: int | None = None
    """The version that the sender saw; the command is refused when the deployment has changed since."""


class StartingCommand(DeploymentCommand):
    """A command that starts something."""

    through_freeze: bool = False
    """Start it in a freeze too; needs a reason."""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.through_freeze and not self.reason:
            raise ValueError("through_freeze needs a reason, for the history")
        return self
