"""The base of commands: their common fields, and the role that may give them. And the two queries."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from domain.installation.tokens import Role
from domain.text.errors import RollwayError
from domain.text.storable import DeploymentName

REQUEST_ID_LENGTH = 320
MAX_REPLICAS = 10_000
Replicas = Annotated[int, Field(ge=0, le=MAX_REPLICAS, strict=True)]


SPEC = {"command": ["python", "app.py"], "health_check": {"path": "/health"}}
POLICY = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
"""The spec and the policy in the examples of bodies."""


class RequestIdReusedError(RollwayError):
    """The request id was used before for something else."""


class StaleVersionError(RollwayError):
    """The caller's version of the deployment is no longer the current one."""


class Command(BaseModel):
    """The fields of every command."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    task: ClassVar[str]
    answer: ClassVar[type[BaseModel]]
    """The model of `result` in the task's answer."""
    role: ClassVar[Role] = Role.RELEASER
    """The least role that may give it."""
    is_of_fleet: ClassVar[bool] = False
    """Whether only tokens for all deployments may give it."""
    is_planned: ClassVar[bool] = False
    """Whether its effect can be planned first."""
    example: ClassVar[Mapping[str, Any]] = {}
    """An example of its body, with every field that it needs."""

    request_id: str = Field(min_length=1, max_length=REQUEST_ID_LENGTH)
    """Sent again with the same id, nothing is done twice, and the first answer comes back."""
    actor: str = Field(default="unknown", min_length=1, max_length=200)
    """The actor, for the history; where commands are signed, the sender's name."""
    reason: str = Field(default="", max_length=1000)
    """Why, for the history."""
    schema_version: Literal[1] = 1
    """The version of the payload's form."""


class DeploymentCommand(Command):
    """A command to one deployment."""

    deployment: DeploymentName
    """The name of the deployment."""
    expected_version: int | None = None
    """The version that the sender saw; the command is refused when the deployment has changed since."""


class Starting(Command):
    """A command that starts something."""

    through_freeze: bool = False
    """Ignore a freeze; needs a reason."""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.through_freeze and not self.reason:
            raise ValueError("through_freeze needs a reason, for the history")
        return self


class Query(BaseModel):
    """The fields of every query. It changes nothing, so it needs no request id."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    task: ClassVar[str]

    actor: str = Field(default="unknown", min_length=1, max_length=200)
    """The actor; where queries are signed, the sender's name."""
    schema_version: Literal[1] = 1


class GetDeployment(Query):
    """A deployment as `rollway status NAME --json` shows it; once it is destroyed, as it was in the end."""

    task = "rollway.get_deployment"

    deployment: DeploymentName
    """The name of the deployment."""


class GetRollout(Query):
    """A rollout, under way or ended: `outcome` is null until it ends. The command that began it answered its id."""

    task = "rollway.get_rollout"

    rollout_id: UUID
    """The id of the rollout."""


QUERIES: dict[str, type[Query]] = {query.task: query for query in (GetDeployment, GetRollout)}
