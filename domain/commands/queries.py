"""What people and other services may ask to be told: one validated payload for each query, by the task's name."""

from typing import ClassVar, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from domain.words.names import DeploymentName


class Query(BaseModel):
    """What every query carries. It changes nothing, so it needs no request id."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    task: ClassVar[str]

    actor: str = Field(default="unknown", min_length=1, max_length=200)
    """Who asks; signed, the sender is meant."""
    schema_version: Literal[1] = 1


class GetDeployment(Query):
    """A deployment as `rollway status NAME --json` shows it; once it is destroyed, as it was in the end."""

    task = "rollway.get_deployment"

    deployment: DeploymentName
    """The name of the deployment."""


class GetRollout(Query):
    """A rollout, under way or ended: `outcome` is null until it ends. Its id is in the answer of what began it."""

    task = "rollway.get_rollout"

    rollout_id: UUID
    """The id of the rollout."""


QUERIES: dict[str, type[Query]] = {query.task: query for query in (GetDeployment, GetRollout)}
