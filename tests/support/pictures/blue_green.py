"""Blue-green rollouts as pictures: blue left of the bar and green right of it, one cycle at a time."""

from dataclasses import replace

from domain.cycle.evaluator import EVALUATOR
from domain.model.deployment import Deployment
from tests.support.pictures.pictures import NOW, V3, blue_green, happens, route_id

AUTO = blue_green(auto_promote=True)
MANUAL = blue_green()
DELAYED = blue_green(auto_promote=True, promote_delay_seconds=20)
PARKING = blue_green(auto_promote=True, scale_down_delay_seconds=60)
IN_GRACE, PAST_GRACE = 5.0, 31.0


def step(deployment: Deployment) -> str:
    """What the next cycle does, as a picture tells it."""
    return happens(deployment, EVALUATOR.evaluate_one(deployment, NOW))


def asked(deployment: Deployment) -> Deployment:
    """The same, after a person asked for the promotion."""
    assert deployment.rollout is not None
    return replace(deployment, rollout=replace(deployment.rollout, promote_requested=True))


def of_v3(deployment: Deployment, *numbers: int) -> Deployment:
    """The same, with these routes of a third revision."""
    chosen = {route_id(number) for number in numbers}
    routes = (replace(route, revision_id=V3) if route.id in chosen else route for route in deployment.routes)
    return replace(deployment, routes=tuple(routes))
