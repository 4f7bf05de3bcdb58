"""What proxies do: they acknowledge weights, and tell what was answered, and by whom."""

from collections.abc import Iterator
from dataclasses import replace

from domain.cycle.rollout import weight_known
from domain.model.answer_counts import Answers
from domain.model.canary import Evidence
from domain.model.deployment import Rollout
from tests.support.pictures.pictures import PROVISIONING
from tests.support.pictures.values_within import canary_of, with_canary
from tools.prove.clocks import HARM, NOTHING, is_asked, told
from tools.prove.state import Move, State, changed

MANY = 1000
"""Answers that are enough for any judge."""


def proxies(state: State) -> Iterator[Move]:
    """The last live one acknowledges the weight of a canary; or they tell its judge what was answered.

    On the way back nothing reads who knows that it has no weight any more, and of its answers failures alone count.
    """
    acknowledged = weight_known(state.deployment, state.now)
    weighs = bool(acknowledged.rollout and canary_of(acknowledged.rollout).weight)
    if acknowledged is not state.deployment and (acknowledged.status == PROVISIONING or weighs):
        after = replace(acknowledged, version=acknowledged.version + 1)
        yield Move("every proxy knows the weight", changed(state, after), kind=True)
    rollout = state.deployment.rollout
    if rollout is None:
        return
    forward = state.deployment.status == PROVISIONING
    if forward and state.left.misfortunes and not rollout.unanswered:
        nobody = replace(state.deployment, rollout=replace(rollout, unanswered=rollout.policy.limits.unanswered))
        yield Move("nobody is answered", changed(state, nobody, misfortune=True))
    if forward and rollout.in_use and rollout.unanswered is not None:
        yield Move("the new revision answers somebody", _answers(state, rollout))
    if not is_asked(rollout, state.now):
        return
    known = told(rollout, state.now)
    if known == NOTHING and forward:
        yield _told("proxies tell of good answers", state, failed=0)
    if state.left.misfortunes and known != HARM:
        harmed = _told("proxies tell of failures", state, failed=MANY)
        yield harmed._replace(kind=False, state=replace(harmed.state, left=state.left.after_misfortune()))


def _answers(state: State, rollout: Rollout) -> State:
    """What was kept at hand until then is kept no longer."""
    now, old = state.now, rollout.from_revision_id
    routes = tuple(
        replace(route, parked_until=now) if route.revision_id == old and route.parked_until else route
        for route in state.deployment.routes
    )
    proven = replace(rollout, unanswered=None)
    version = state.deployment.version + 1
    return changed(state, replace(state.deployment, rollout=proven, routes=routes, version=version))


def _told(event: str, state: State, failed: int) -> Move:
    """No row of the deployment changes by it, and nobody is woken."""
    new, old = Answers(MANY, failed, begun=MANY), Answers(MANY, begun=MANY)
    seen = Evidence(state.now, new, old, 1, 1)
    assert state.deployment.rollout is not None
    rollout = with_canary(state.deployment.rollout, evidence=(seen,))
    return Move(event, replace(state, deployment=replace(state.deployment, rollout=rollout)), kind=True)
