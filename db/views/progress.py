"""The read that follows a rollout: a deployment, a rollout, and the steps that are new since the last read."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.views.deployments import DeploymentView, RolloutView, deployment_by_id, rollouts_by_id
from db.views.timeline import StepView, steps_of


@dataclass(frozen=True, slots=True)
class Progress:
    """A deployment, the rollout that is followed, and its new steps, all read from one snapshot of Postgres."""

    deployment: DeploymentView
    rollout: RolloutView | None = None
    steps: tuple[StepView, ...] = ()


def progress_of(connection: Connection[Any], deployment_id: UUID, rollout_id: UUID | None, after_step: int) -> Progress:
    """The deployment, the rollout of that id, and its steps with numbers above `after_step`."""
    deployment = deployment_by_id(connection, deployment_id)
    if rollout_id is None:
        return Progress(deployment)
    rollout = rollouts_by_id(connection, [rollout_id])[rollout_id]
    return Progress(deployment, rollout, tuple(steps_of(connection, rollout_id, after_step)))
