"""The cycles of a rollout as pictures, from the steps that Postgres keeps, so that none is missed by polling."""

from dataclasses import dataclass, replace

from db.views.deployment_view import DeploymentView
from db.views.timeline import StepView
from domain.cycle.effects import routes_after
from domain.cycle.recording import changes_from_json, inputs_from_json
from domain.cycle.rollout import wait_in_words
from domain.model.decision import RouteChanges
from domain.model.deployment import Deployment
from domain.model.picture import picture
from domain.model.states import Verdict


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle of a rollout: the picture that it saw, what it did in a few words, and why.

    `active` counts the replicas that the budget counts, `serving` the healthy ones in traffic.
    """

    picture: str
    did: str
    why: str
    active: int
    serving: int


def cycles(step: StepView) -> list[Cycle]:
    """A step's own cycle; after one that created replicas also the wait for them, drawn as it left them."""
    before, at = inputs_from_json(step.inputs)
    changes = changes_from_json(step.decision)
    own = cycle_of(before, _did(changes, step), step.decision["reason"])
    if not changes.created:
        return [own]
    after = replace(before, routes=routes_after(before.routes, changes, at))
    wait = wait_in_words(after, at)
    return [own, cycle_of(after, "wait", wait)] if wait else [own]


def cycle_of(deployment: Deployment | DeploymentView, did: str, why: str) -> Cycle:
    """The picture of this moment."""
    routes = deployment.routes
    drawn = picture(routes, deployment.current_revision_id, deployment.deploying_revision_id)
    return Cycle(drawn, did, why, sum(route.is_active for route in routes), sum(route.is_serving for route in routes))


def _did(changes: RouteChanges, step: StepView) -> str:
    parts = []
    if changes.created:
        parts.append(f"create {changes.created}")
    if changes.promote_route_ids:
        parts.append(f"promote {len(changes.promote_route_ids)}")
    if changes.drain_route_ids:
        parts.append(f"drain {len(changes.drain_route_ids)}")
    match step.decision["revision"]:
        case "swap":
            parts.append("completed, swap, ready")
        case "clear":
            parts.append("back where it was, ready")
    if step.verdict in (Verdict.EXPIRED, Verdict.GIVE_UP, Verdict.ERROR):
        parts.append(f"{step.verdict.replace('_', ' ')}: {step.decision['reason'].partition('; last:')[0]}")
    return ", ".join(parts)
