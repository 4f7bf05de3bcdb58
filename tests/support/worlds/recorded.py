"""The steps that a rollout of the simulated world leaves on record."""

import json

from domain.cycle.recording import decision_json, inputs_json
from domain.handlers.dispatch import handler_of
from domain.model.deployment import Deployment
from domain.planning.recorded_rollout import RecordedStep
from tests.support.pictures.simulation import world_of


def steps_of(deployment: Deployment) -> list[RecordedStep]:
    """Those of a rollout in which each start and stop takes a second."""
    world = world_of(deployment, stop_seconds=1.0)
    world.run(300)
    changing = [look for look in world.looks if look.decision.changes_anything and look.decision.deployment.rollout]
    return [
        RecordedStep.of(
            number,
            handler_of(look.decision.deployment).name,
            look.at,
            json.loads(inputs_json(look.decision.deployment, look.at)),
            json.loads(decision_json(look.decision)),
        )
        for number, look in enumerate(changing, 1)
    ]
