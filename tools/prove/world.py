"""What happens by itself: workers look, replicas change, time passes. Misfortunes are counted."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from domain.cycle.effects import after, routes_after
from domain.cycle.rollout import is_judged
from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.handlers.dispatch import cycle
from domain.handlers.scaling import TIMEOUT_MINUTES
from domain.model.deployment import Deployment, Rollout, Route
from domain.model.states import RouteStatus
from domain.planning.simulator import with_status
from domain.strategies.canary.judge_step import EVERY_SECONDS
from tests.support.pictures.pictures import DESTROYED, PROVISIONING, SCALING
from tools.prove.clocks import begin, ends
from tools.prove.key import FAR
from tools.prove.laws.decisions import broken_by_decision
from tools.prove.laws.every_state import broken_by_waiting
from tools.prove.laws.requests import broken_by_requests
from tools.prove.laws.spelled import after_look, after_news, unlike
from tools.prove.state import LONG, Move, RolledBack, State, changed, still_held, without_devices

_COMING_OR_GOING = (RouteStatus.PROVISIONING, RouteStatus.TERMINATING)


def workers(state: State) -> Iterator[Move]:
    """A look; or one whose worker stalls between deciding and writing, and writes late, or dies."""
    if state.is_due and state.deployment.status != DESTROYED:
        decision = cycle(state.seen, state.now)
        yield _written("look", state, decision, kind=True)
        if state.left.misfortunes and state.held is None:
            held = replace(state, held=decision, left=state.left.after_misfortune())
            yield Move("a worker decides, and stalls", held, said=decision.reason)
    if state.held is not None:
        yield _written("the stalled worker writes", state, state.held)
        yield Move("the stalled worker dies", replace(state, held=None))


def _written(event: str, state: State, decision: ClassifiedDecision, *, kind: bool = False) -> Move:
    deployment = without_devices(after(decision, state.now), state.deployment)
    if decision.deployment.version != state.deployment.version:
        routes = routes_after(state.deployment.routes, decision.changes, state.now)
        deployment = replace(deployment, routes=routes, version=state.deployment.version + 1)
    held = still_held(state, deployment) if decision is not state.held else None
    due_at = state.now if state.seen.hold and not decision.deployment.hold else decision.due_at  # by the long tick
    written = replace(state, deployment=deployment, due_at=due_at, held=held)
    before = decision.deployment.rollout
    if before is not None and decision.revision is RevisionMove.SWAP:
        written = replace(written, previous=None if before.is_undo else before.from_revision_id, rolled_back=None)
    if before is not None and decision.revision is RevisionMove.CLEAR:
        again = RolledBack(before.to_revision_id, before.desired_with_revision, before.desired_at_start, before.is_undo)
        written = replace(written, previous=None, rolled_back=again)
    broken = unlike("a look", after_look(decision, state.now), after(decision, state.now))
    return Move(event, written, kind, decision.reason, broken or broken_by_decision(state, decision, written))


def replicas(state: State) -> Iterator[Move]:
    """What can become of each replica. Which of those that stop is gone first makes no difference."""
    stopping = {route.revision_id: route for route in state.deployment.routes if not route.is_active}
    awake = (route for route in state.deployment.active_routes if not route.has_lent)
    for route in (*awake, *stopping.values()):
        match route.status:
            case RouteStatus.PROVISIONING:
                yield _news("a replica starts", state, route, RouteStatus.HEALTHY, kind=True)
                if state.left.misfortunes:
                    yield _news("a replica fails to start", state, route, RouteStatus.FAILED)
                    yield _news("its host is lost", state, route, RouteStatus.FAILED, blame=False)
                    yield _drained(state, route)
            case RouteStatus.TERMINATING:
                yield Move("a replica has stopped", _without(state, route), kind=True)
            case RouteStatus.HEALTHY if state.left.misfortunes:
                yield _news("a replica dies", state, route, RouteStatus.FAILED)
                yield _news("its host is lost", state, route, RouteStatus.FAILED, blame=False)
                yield _drained(state, route)
                yield _news("a replica sickens", state, route, RouteStatus.UNHEALTHY)
                yield _news("a replica degrades", state, route, RouteStatus.DEGRADED)
            case RouteStatus.UNHEALTHY | RouteStatus.DEGRADED:
                yield _news("a replica recovers", state, route, RouteStatus.HEALTHY, kind=True)
                if state.left.misfortunes:
                    yield _news("a sick replica dies", state, route, RouteStatus.FAILED)


def _news(
    event: str, state: State, route: Route, status: RouteStatus, *, kind: bool = False, blame: bool = True
) -> Move:
    deployment = with_status(state.deployment, [route.id], status, state.now, blame=blame)
    wanted = after_news(state.deployment, route, status, state.now, blame=blame)
    broken = unlike("news of a replica", wanted, deployment) or broken_by_requests(deployment)
    return Move(event, changed(state, deployment, misfortune=not kind), kind, broken=broken)


def _drained(state: State, there: Route) -> Move:
    """A person empties its host, or gives it back."""
    event = "its host is given back" if there.is_misplaced else "its host is drained"
    moved = replace(there, is_misplaced=not there.is_misplaced)
    routes = tuple(moved if route is there else route for route in state.deployment.routes)
    drained = replace(state.deployment, routes=routes, version=state.deployment.version + 1)
    return Move(event, changed(state, drained, misfortune=True))


def sleepers(state: State) -> Iterator[Move]:
    """A parked one sleeps, and may die in its sleep."""
    for route in state.deployment.active_routes if state.sleeps else ():
        if route.has_lent and state.left.misfortunes:
            yield _news("a sleeping replica dies", state, route, RouteStatus.FAILED, blame=False)
        elif route.status is RouteStatus.HEALTHY and route.parked_until and _sleeps(state, route):
            yield Move("a parked replica sleeps", changed(state, _asleep(state.deployment, route)), kind=True)


def _is_asleep(route: Route) -> bool:
    return route.has_lent and route.is_active


def _sleeps(state: State, route: Route) -> bool:
    """None does that is needed."""
    forward = state.deployment.status.goes_forward
    target = state.deployment.deploying_revision_id if forward else state.deployment.current_revision_id
    return route.revision_id != target


def _asleep(deployment: Deployment, sleeper: Route) -> Deployment:
    asleep = replace(sleeper, status=RouteStatus.PROVISIONING, has_lent=True)
    routes = tuple(asleep if route is sleeper else route for route in deployment.routes)
    return replace(deployment, routes=routes, version=deployment.version + 1)


def _without(state: State, gone: Route) -> State:
    left = tuple(route for route in state.deployment.routes if route.id != gone.id)
    return changed(state, replace(state.deployment, routes=left, version=state.deployment.version + 1))


def freezes(state: State) -> Iterator[Move]:
    """One that pauses what has moved already begins, by a person's hand, and ends."""
    if state.frozen:
        yield Move("the freeze ends", replace(state, frozen=False, due_at=state.now), kind=True)
    elif state.left.commands and state.deployment.rollout is not None:
        left = state.left.after_command()
        yield Move("a freeze begins", replace(state, frozen=True, due_at=state.now, left=left))


def time(state: State, *, awaited: bool) -> Iterator[Move]:
    """It jumps to what comes next. A limit of a rollout that passes while something is under way is a misfortune.

    `awaited`: a kind world has a proxy that speaks first.
    """
    deployment, now = state.deployment, state.now
    rollout = deployment.rollout
    runs = rollout is not None and rollout.deadline > now and rollout.clock_stopped_at is None
    if rollout and runs and state.left.misfortunes and deployment.status == PROVISIONING:
        passed = replace(deployment, rollout=replace(rollout, deadline=now))
        yield Move("the deadline passes", changed(state, passed, misfortune=True))
        if seconds := rollout.policy.limits.progress_timeout_seconds:
            long_ago = replace(deployment, rollout=replace(rollout, last_progress_at=now - timedelta(seconds=seconds)))
            yield Move("the time without progress passes", changed(state, long_ago, misfortune=True))
    if deployment.status == SCALING and not _has_scaled_long(deployment, now):
        long_ago = replace(deployment, phase_started_at=now - timedelta(minutes=TIMEOUT_MINUTES))
        yield Move("the time of scaling passes", changed(state, long_ago))
    if state.is_due:
        return
    moving = any(route.status in _COMING_OR_GOING and not _is_asleep(route) for route in deployment.routes)
    resting = not awaited and not state.frozen and not moving
    coming = [at for at in ends(state) if at > now]
    at = min(coming, default=None)
    due_at = state.due_at
    if rollout is not None and looks_in_vain(state, rollout, at):
        due_at = min((at, *_same_end(state, rollout, coming))) if at else None
    if at is not None and (due_at is None or at < due_at):
        yield _later(state, at, kind=resting, broken=broken_by_waiting(state.seen, at))
    elif due_at is not None and (resting or due_at - now < timedelta(seconds=FAR)):
        yield _later(state, due_at, kind=resting)
    waits = rollout is not None and due_at is None and rollout.clock_stopped_at is not None
    if rollout and waits and now - (rollout.clock_stopped_at or now) < timedelta(seconds=LONG):
        yield _later(state, now + timedelta(seconds=LONG))


def _has_scaled_long(deployment: Deployment, now: datetime) -> bool:
    return now - deployment.phase_started_at >= timedelta(minutes=TIMEOUT_MINUTES)


def looks_in_vain(state: State, rollout: Rollout, at: datetime | None) -> bool:
    """A judge is asked each second, and finds nothing until `at`, or for ever: neither the next look nor the last one.

    Such a look leaves everything as it was, and asks for the next one.
    """
    due_at, every = state.due_at, timedelta(seconds=EVERY_SECONDS)
    if due_at is None or not is_judged(rollout) or due_at - state.now > every:
        return False
    if at is not None and at <= due_at:
        return False
    last = due_at + timedelta(seconds=LONG) if at is None else at - every
    for look in (due_at, last):
        decision = cycle(state.seen, look)
        turns_clock = decision.clock_stopped is (rollout.clock_stopped_at is None)
        if decision.changes_anything or turns_clock or decision.due_at is None or decision.due_at - look > every:
            return False
    return True


def _same_end(state: State, rollout: Rollout, coming: Iterable[datetime]) -> Iterator[datetime]:
    """The moments at which a clock that begins then ends together with one that runs; it stops there too."""
    spans = [timedelta(seconds=seconds) for seconds in begin(state, rollout)]
    return (at - span for at in coming for span in spans if at - span > state.now)


def _later(state: State, at: datetime, *, kind: bool = False, broken: str | None = None) -> Move:
    seconds = (at - state.now).total_seconds()
    return Move(f"{seconds:.0f} s pass", replace(state, now=at, held=None), kind, broken=broken)
