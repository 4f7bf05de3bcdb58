"""What happens by itself: workers look, replicas change, time passes. Misfortunes are counted."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from domain.after import after, routes_after
from domain.backoff import next_start_at, proven_at
from domain.foresight.world import cycle, with_status
from domain.judge.evidence import Evidence
from domain.model import Rollout, Route, RouteStatus
from domain.rollout import is_judged, weight_known
from domain.strategies.buckets import grace_ends_at
from domain.traffic.answers import Answers
from domain.transitions import ClassifiedDecision, RevisionMove
from tests.prove.decisions import broken_by_decision
from tests.prove.key import FAR, LONG, spans, told
from tests.prove.laws import broken_by_waiting
from tests.prove.state import Move, State, changed, still_held
from tests.support.pictures import DESTROYED, PROVISIONING

_COMING_OR_GOING = (RouteStatus.PROVISIONING, RouteStatus.TERMINATING)
_SICK = (RouteStatus.UNHEALTHY, RouteStatus.DEGRADED)
MANY = 1000
"""Answers that are enough for any judge."""


def workers(state: State) -> Iterator[Move]:
    """A look; or one whose worker stalls between deciding and writing, and writes late, or dies."""
    if state.is_due and state.deployment.status != DESTROYED:
        decision = cycle(state.deployment, state.now)
        yield _written("look", state, decision, kind=True)
        if state.left.misfortunes and state.held is None:
            held = replace(state, held=decision, left=state.left.after_misfortune())
            yield Move("a worker decides, and stalls", held, said=decision.reason)
    if state.held is not None:
        yield _written("the stalled worker writes", state, state.held)
        yield Move("the stalled worker dies", replace(state, held=None))


def _written(event: str, state: State, decision: ClassifiedDecision, *, kind: bool = False) -> Move:
    deployment = after(decision, state.now)
    if decision.deployment.version != state.deployment.version:
        routes = routes_after(state.deployment.routes, decision.changes, state.now)
        deployment = replace(deployment, routes=routes, version=state.deployment.version + 1)
    held = still_held(state, deployment) if decision is not state.held else None
    written = replace(state, deployment=deployment, due_at=decision.due_at, held=held)
    before = decision.deployment.rollout
    if before is not None and decision.revision is RevisionMove.SWAP:
        written = replace(written, previous=None if before.is_undo else before.from_revision_id, rolled_back=None)
    if before is not None and decision.revision is RevisionMove.CLEAR:
        again = (before.to_revision_id, before.desired_with_revision)
        written = replace(written, previous=None, rolled_back=again)
    return Move(event, written, kind, decision.reason, broken_by_decision(state, decision, written))


def replicas(state: State) -> Iterator[Move]:
    """What can become of each replica. Which of those that stop is gone first makes no difference."""
    stopping = {route.revision_id: route for route in state.deployment.routes if not route.is_active}
    for route in (*state.deployment.active_routes, *stopping.values()):
        match route.status:
            case RouteStatus.PROVISIONING:
                yield _news("a replica starts", state, route, RouteStatus.HEALTHY, kind=True)
                if state.left.misfortunes:
                    yield _news("a replica fails to start", state, route, RouteStatus.FAILED)
            case RouteStatus.TERMINATING:
                yield Move("a replica has stopped", _without(state, route), kind=True)
            case RouteStatus.HEALTHY if state.left.misfortunes:
                yield _news("a replica dies", state, route, RouteStatus.FAILED)
                yield _news("a replica sickens", state, route, RouteStatus.UNHEALTHY)
                yield _news("a replica degrades", state, route, RouteStatus.DEGRADED)
            case RouteStatus.UNHEALTHY | RouteStatus.DEGRADED:
                yield _news("a replica recovers", state, route, RouteStatus.HEALTHY, kind=True)
                if state.left.misfortunes:
                    yield _news("a sick replica dies", state, route, RouteStatus.FAILED)


def _news(event: str, state: State, route: Route, status: RouteStatus, *, kind: bool = False) -> Move:
    deployment = with_status(state.deployment, [route.id], status, state.now)
    return Move(event, changed(state, deployment, misfortune=not kind), kind)


def _without(state: State, gone: Route) -> State:
    deployment = state.deployment
    left = tuple(route for route in deployment.routes if route.id != gone.id)
    return changed(state, replace(deployment, routes=left, version=deployment.version + 1))


def proxies(state: State) -> Iterator[Move]:
    """The last live one acknowledges the weight of a canary; or they tell its judge what was answered."""
    known = weight_known(state.deployment, state.now)
    if known is not state.deployment:
        after = replace(known, version=known.version + 1)
        yield Move("every proxy knows the weight", changed(state, after), kind=True)
    if _is_looked_at(state) and not told(_rollout(state), state.now):
        yield _told("proxies tell of good answers", state, failed=0)
    if state.left.misfortunes and _is_looked_at(state) and told(_rollout(state), state.now) <= 1:
        harmed = _told("proxies tell of failures", state, failed=MANY)
        yield harmed._replace(kind=False, state=replace(harmed.state, left=state.left.after_misfortune()))


def _told(event: str, state: State, failed: int) -> Move:
    """No row of the deployment changes by it, and nobody is woken."""
    seen = Evidence(state.now, Answers(MANY, failed), Answers(MANY), 1, 1)
    rollout = replace(_rollout(state), evidence=(seen,))
    return Move(event, replace(state, deployment=replace(state.deployment, rollout=rollout)), kind=True)


def _is_looked_at(state: State) -> bool:
    """Its judge goes by what comes in from now on."""
    rollout = state.deployment.rollout
    known_at = rollout.weight_known_at if rollout and is_judged(rollout) else None
    return known_at is not None and known_at < state.now


def _rollout(state: State) -> Rollout:
    rollout = state.deployment.rollout
    assert rollout is not None
    return rollout


def time(state: State) -> Iterator[Move]:
    """It jumps to what comes next. A limit that passes while something is under way is a misfortune."""
    deployment, now, due_at = state.deployment, state.now, state.due_at
    rollout = deployment.rollout
    runs = rollout is not None and rollout.deadline > now and rollout.clock_stopped_at is None
    if rollout and runs and state.left.misfortunes and deployment.status == PROVISIONING:
        passed = replace(deployment, rollout=replace(rollout, deadline=now))
        yield Move("the deadline passes", changed(state, passed, misfortune=True))
    if state.is_due:
        return
    coming = (route.status in _COMING_OR_GOING for route in deployment.routes)
    resting = not any(coming) and not any(move.kind for move in proxies(state))
    at = min((at for at in _ends(state) if at > now), default=None)
    if at is not None and (due_at is None or at < due_at):
        yield _later(state, at, kind=resting, broken=broken_by_waiting(deployment, at))
    elif due_at is not None and (resting or due_at - now < timedelta(seconds=FAR)):
        yield _later(state, due_at, kind=resting)
    waits = rollout is not None and due_at is None and rollout.clock_stopped_at is not None
    if rollout and waits and now - (rollout.clock_stopped_at or now) < timedelta(seconds=LONG):
        yield _later(state, now + timedelta(seconds=LONG))


def _later(state: State, at: datetime, *, kind: bool = False, broken: str | None = None) -> Move:
    seconds = (at - state.now).total_seconds()
    return Move(f"{seconds:.0f} s pass", replace(state, now=at, held=None), kind, broken=broken)


def _ends(state: State) -> Iterator[datetime]:
    deployment = state.deployment
    healthy_for = [timedelta(seconds=seconds) for seconds in spans(state.policy)] if deployment.rollout else []
    for route in deployment.routes:
        if route.status in _SICK:
            yield grace_ends_at(route)
        elif route.status is RouteStatus.HEALTHY:
            yield from (route.status_changed_at + span for span in healthy_for)
        if route.parked_until is not None:
            yield route.parked_until
    if deployment.rollout is not None and deployment.rollout.weight_known_at is not None:
        yield from (deployment.rollout.weight_known_at + span for span in healthy_for)
    if deployment.start_failures is not None:
        failures = deployment.start_failures
        yield next_start_at(failures) if failures.came_up_at is None else proven_at(failures.came_up_at)
    if deployment.retry_at is not None:
        yield deployment.retry_at
