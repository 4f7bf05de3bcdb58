"""What must hold at every step that a handler takes. Each law is the sentence that is printed when it is broken."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from domain.cycle.effects import routes_after
from domain.cycle.rollout import guard_of, is_judged
from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.cycle.writes import outcome_of
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, Rollout, Route, StartFailures
from domain.model.states import Lifecycle, RouteStatus, Verdict
from domain.strategies.canary.judge_step import EVERY_SECONDS
from domain.strategies.converge import SHORT_LIVES, is_proven
from tests.support.pictures.pictures import READY, ROLLING_BACK
from tests.support.pictures.safety import counted, is_parked, target_of
from tests.support.worlds.promised import Promised, promised
from tools.prove.clocks import SICK
from tools.prove.laws.every_state import broken_by_row
from tools.prove.laws.limits import broken_by_limits
from tools.prove.laws.standing import broken_by_standing, is_sick_too_long
from tools.prove.laws.weights import broken_by_weight
from tools.prove.laws.wishes import broken_by_wish
from tools.prove.state import State, awake


def broken_by_decision(state: State, decision: ClassifiedDecision, after: State) -> str | None:
    """The first law that this step breaks: by what it changes, by how it ends, by when it looks again."""
    if decision.verdict is Verdict.ERROR:
        return f"a decision never fails: {decision.reason}"
    if after.devices is not None and (owners := awake(after.deployment)) > after.devices:
        return f"a device has one owner: {owners} replicas on {after.devices} devices"
    looked = decision.deployment
    state = replace(state, deployment=replace(state.deployment, hold=looked.hold, devices=looked.devices))
    for sentence in (
        *_by_changes(state, decision),
        *broken_by_weight(state, decision),
        *broken_by_standing(state, decision),
        *broken_by_wish(state, decision, after.deployment),
        *broken_by_limits(state, decision),
        *_by_end(decision, after),
        *_by_next_look(state, after, decision),
    ):
        return sentence
    return broken_by_row(after.deployment, state.now)


def _by_changes(state: State, decision: ClassifiedDecision) -> Iterator[str]:
    """Judged as Postgres would: against the routes as they are now, whatever the decision was made from."""
    before, changes = state.deployment, decision.changes
    if not changes:
        return
    match before.status.lifecycle:
        case Lifecycle.SCALING | Lifecycle.DEPLOYING:
            yield from _within_budgets(state, decision)
        case Lifecycle.DESTROYING:
            if changes.created:
                yield "nothing is created while destroying"
        case _:
            yield f"nothing is created or drained while {before.status}"


def _within_budgets(state: State, decision: ClassifiedDecision) -> Iterator[str]:
    before, changes, now = state.deployment, decision.changes, state.now
    budget = promised(before)
    keep = budget.keep_after(promotion=decision.revision is RevisionMove.SWAP)
    if changes.created:
        yield from _by_creations(before, decision, budget, now)
    own = before.current_revision_id if before.stands_still else None  # it is whole without what it has parked
    drained = [r for r in before.routes if r.id in changes.drain_route_ids and r.revision_id != own]
    if before.devices is not None:  # a sick one does not sleep, and holds what others need
        drained = [route for route in drained if route.status not in SICK]
    kept = not budget.alone and before.status != ROLLING_BACK and before.desired_replicas > 0  # at 0 nobody is at hand
    if kept and any(is_parked(route, target_of(before), now) for route in drained):
        yield "what is parked runs until its time is over"
    taken = {route.id for route in before.routes if route.is_serving}
    if taken & {*changes.drain_route_ids, *changes.park_route_ids}:
        serving = sum(route.is_serving for route in routes_after(before.routes, changes, now))
        if serving < keep:
            yield f"our own drains leave at least {keep} serving, not {serving}"
        if before.rollout is not None and serving < guard_of(before).keep:
            yield f"Postgres holds a rollout to what its budgets come to: {guard_of(before).keep} stay, not {serving}"


def _by_creations(before: Deployment, decision: ClassifiedDecision, budget: Promised, now: datetime) -> Iterator[str]:
    live, target, created = counted(before, now), target_of(before), decision.changes.created
    guard = guard_of(before) if before.rollout else budget
    allowed = guard.ceiling if decision.deployment.stands_still else min(budget.ceiling, guard.ceiling)
    if live + created > allowed:
        yield f"{live} + {created} replicas are more than the {allowed} allowed"
    if any(spec.revision_id != target for spec in decision.changes.rollout_specs) and not _keeps_old(
        before, decision, now
    ):
        yield "only replicas of the revision that should run are created"
    made = {spec.revision_id for spec in decision.changes.rollout_specs}
    others = (made - {route.revision_id} and _runs(route) for route in before.routes)
    if budget.alone and any(others):
        yield "no replica starts before every one of another revision has stopped"
    failures = before.start_failures
    too_early = failures is not None and failures.came_up_at is None and now < _next_start(failures)
    if (
        failures
        and too_early
        and any(spec.revision_id == failures.revision_id for spec in decision.changes.rollout_specs)
    ):
        yield "a start that failed is not tried again before its time"


def _next_start(failures: StartFailures) -> datetime:
    """After 2, 4, 8 ... seconds, at most ten minutes."""
    return failures.last_at + timedelta(seconds=min(600, 2**failures.in_a_row))


def _keeps_old(before: Deployment, decision: ClassifiedDecision, now: datetime) -> bool:
    """What blue, or the old side of a canary, loses is replaced, and what anybody loses who stands still or warms."""
    if before.rollout is None or before.rollout.policy.strategy == "recreate":
        return decision.deployment.stands_still
    known = (before.current_revision_id, before.deploying_revision_id)
    well = sum(not is_sick_too_long(route, now) for route in before.active_routes)
    replaces = before.rollout.policy.strategy in ("blue_green", "canary") or well < before.desired_replicas
    return (replaces or decision.deployment.stands_still) and all(
        spec.revision_id in known for spec in decision.changes.rollout_specs
    )


def _runs(route: Route) -> bool:
    return route.is_active or route.status is RouteStatus.TERMINATING


def _by_end(decision: ClassifiedDecision, after: State) -> Iterator[str]:
    before, deployment = decision.deployment, after.deployment
    if (before.rollout is not None and deployment.rollout is None) != (outcome_of(decision) is not None):
        yield "a rollout that ends has an outcome, and only that"
    complete = decision.verdict is Verdict.SUCCESS and decision.to == READY
    if complete and deployment.retry_at is not None and deployment.retry_at > after.now:
        yield "only what was given up waits for its next try"
    if complete and not _is_called_as_it_is(deployment, decision, after.now):
        yield "what is complete is called degraded for short lives of its own revision, and for nothing else"
    if decision.revision is RevisionMove.KEEP or before.rollout is None:
        return
    wanted, current = deployment.desired_replicas, deployment.current_revision_id
    serving = sum(route.is_serving and route.revision_id == current for route in deployment.routes)
    failures = before.start_failures
    fails = failures is not None and failures.revision_id == current and failures.in_a_row >= 3
    if serving < wanted and not (before.status == ROLLING_BACK and fails and not before.active_routes):
        yield f"a rollout that ends is complete: {serving} of {wanted} serve"
    foreign = [route for route in deployment.active_routes if route.revision_id != current]
    if any(not is_parked(route, target_of(deployment), after.now) for route in foreign):
        yield "a rollout that ends leaves no other revision running"


def _is_called_as_it_is(deployment: Deployment, decision: ClassifiedDecision, now: datetime) -> bool:
    failures, current = decision.deployment.start_failures, deployment.current_revision_id
    mine = failures is not None and failures.revision_id == current and failures.came_up_at is not None
    often = failures is not None and failures.short_lives >= SHORT_LIVES and not is_proven(failures, now)
    return (deployment.degraded_reason is not None) == (mine and often)


def _by_next_look(state: State, after: State, decision: ClassifiedDecision) -> Iterator[str]:
    due_at, rollout = decision.due_at, after.deployment.rollout
    if decision.verdict is Verdict.SKIPPED and due_at is not None and due_at <= state.now:
        yield "what waits is not looked at again at once"
    goes_on = decision.verdict is Verdict.NEED_RETRY and after.is_due
    if goes_on and decision.changes and cycle(after.seen, after.now).changes == decision.changes:
        yield "the same step is not taken twice in a row"
    runs = rollout is not None and (rollout.clock_stopped_at is None or due_at == rollout.deadline > _soon(state))
    if decision.clock_stopped and runs:
        yield "no clock runs while a person is waited for"
    if rollout is not None and _is_judged(after.deployment, rollout) and (due_at is None or due_at > _soon(state)):
        yield "a canary that is judged is looked at once a second"


def _is_judged(deployment: Deployment, rollout: Rollout) -> bool:
    """On the way back copies are judged no more."""
    weighs = deployment.status != ROLLING_BACK or (rollout.canary is not None and rollout.canary.weight)
    return is_judged(rollout) and deployment.paused_at is None and bool(weighs)


def _soon(state: State) -> datetime:
    return state.now + timedelta(seconds=EVERY_SECONDS)
