"""The read that follows a rollout: a deployment, a rollout, and the steps that are new since the last read."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.views.deployments import DeploymentView, deployment_by_id
from db.views.fleet.signs import SignsOfLife, signs_of_life
from db.views.rollouts import RolloutView, rollouts_by_id
from db.views.routes import FailingStart, failing_start
from db.views.timeline import StepView, steps_of


@dataclass(frozen=True, slots=True)
class Progress:
    """A deployment, the rollout that is followed, its new steps, and the starts that fail, from one snapshot."""

    deployment: DeploymentView
    signs: SignsOfLife
    rollout: RolloutView | None = None
    steps: tuple[StepView, ...] = ()
    failing: FailingStart | None = None


def progress_of(connection: Connection[Any], deployment_id: UUID, rollout_id: UUID | None, after_step: int) -> Progress:
    """The deployment, the rollout of that id, and its steps with numbers above `after_step`."""
    deployment, signs = deployment_by_id(connection, deployment_id), signs_of_life(connection)
    failing = failing_start(connection, deployment_id, deployment.failed_starts)
    if rollout_id is None:
        return Progress(deployment, signs, failing=failing)
    rollout = rollouts_by_id(connection, [rollout_id])[rollout_id]
    return Progress(deployment, signs, rollout, tuple(steps_of(connection, rollout_id, after_step)), failing)
