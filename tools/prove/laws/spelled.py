"""What is left by a look, by news of a replica and by a proxy's word: the rules a second time, slow and field by field.

It shares no code with `domain/cycle/effects.py`, `domain/cycle/rollout.py` and `domain/replicas/status_reports.py`.
"""

from collections import Counter
from dataclasses import fields, replace
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil

from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.model.canary import NOTHING_SEEN, CanaryState
from domain.model.deployment import Deployment, Rollout, Route, StartFailures
from domain.model.states import RouteStatus, TrafficStatus, Verdict
from tests.support.pictures.pictures import PROVISIONING, ROLLING_BACK
from tests.support.worlds.promised import WHOLE, promised

WELL_FOR_GOOD = timedelta(seconds=60)
STILL = timedelta()


def unlike(what: str, wanted: Deployment | None, got: Deployment | None) -> str | None:
    """The fields in which both differ, as the sentence of a law."""
    if wanted == got:
        return None
    if wanted is None or got is None:
        return f"{what} is {'refused' if wanted is None else 'done'} by its rules"
    pairs = [(wanted, got)] if wanted.rollout is None or got.rollout is None else [(wanted.rollout, got.rollout)]
    pairs = [(wanted, got), *pairs]
    wrong = [
        f.name for a, b in pairs for f in fields(a) if f.name != "routes" and getattr(a, f.name) != getattr(b, f.name)
    ]
    if _drawn(wanted) != _drawn(got):
        wrong.append("routes")
    return f"{what} leaves what its rules say: {', '.join(dict.fromkeys(wrong))}" if wrong else None


def _drawn(deployment: Deployment) -> Counter[object]:
    """A new replica has no id of its own yet."""
    new = [route for route in deployment.routes if route.status is RouteStatus.PROVISIONING]
    known = [route for route in deployment.routes if route.status is not RouteStatus.PROVISIONING]
    return Counter([*known, *((route.revision_id, route.traffic, route.created_at) for route in new)])


def after_look(decision: ClassifiedDecision, now: datetime) -> Deployment:
    """By what was decided: verdict, changes, and where they lead."""
    before, ends = decision.deployment, decision.revision is not RevisionMove.KEEP
    is_step = decision.verdict is not Verdict.SKIPPED
    swaps, turns = decision.revision is RevisionMove.SWAP, decision.to == ROLLING_BACK != before.status
    rollout = before.rollout
    return replace(
        before,
        desired_replicas=rollout.desired_at_start if rollout and turns else before.desired_replicas,
        status=decision.to,
        current_revision_id=before.deploying_revision_id if swaps else before.current_revision_id,
        deploying_revision_id=None if ends else before.deploying_revision_id,
        version=before.version + is_step,
        phase_started_at=before.phase_started_at if decision.to == before.status else now,
        phase_attempts=decision.attempts,
        hold=None,
        paused_at=None if ends else before.paused_at,
        rollout=None if rollout is None or ends else _rollout_after(rollout, decision, now, turns=turns),
        degraded_reason=decision.degraded_reason,
        retry_at=decision.retry_at,
        routes=tuple(_routes_after(decision, now)),
    )


def _rollout_after(before: Rollout, decision: ClassifiedDecision, now: datetime, *, turns: bool) -> Rollout:
    """Clocks stand still while a person is waited for; then deadline and progress move on, progress to now at most."""
    stopped_at = before.clock_stopped_at
    if decision.clock_stopped:
        rollout = replace(before, clock_stopped_at=stopped_at or now)
    else:
        asleep = now - stopped_at if stopped_at else STILL
        progress = min(now, before.last_progress_at + asleep)
        rollout = replace(before, clock_stopped_at=None, deadline=before.deadline + asleep, last_progress_at=progress)
    if decision.verdict is Verdict.SKIPPED:
        return rollout
    drained = [route for route in decision.deployment.routes if route.id in decision.changes.drain_route_ids]
    forward = decision.deployment.status == PROVISIONING
    for route in drained:
        if route.revision_id != before.to_revision_id:
            rollout = replace(rollout, last_progress_at=now)
        elif forward and route.status is RouteStatus.UNHEALTHY:
            rollout = replace(rollout, failed_routes=rollout.failed_routes + 1)
    stands = decision.verdict is Verdict.NEED_RETRY and (decision.deployment.paused_at or decision.deployment.hold)
    rollout, stage = replace(rollout, steps=before.steps + (not stands)), decision.changes.stage
    if stage is not None and stage.weight is not None and before.canary and stage.weight < (before.canary.weight or 0):
        rollout = replace(rollout, last_progress_at=now)
    if stage is not None:
        seen = before.canary.evidence if before.canary else NOTHING_SEEN
        canary = CanaryState(stage.number, stage.weight, None, seen)
        rises = before.canary is not None and before.canary.stage == stage.number
        rollout = replace(rollout, canary=canary, promote_requested=rises and rollout.promote_requested)
    if not turns:
        return rollout
    return with_weight(rollout, 0) if decision.harms else returning(decision.deployment, rollout)


def returning(before: Deployment, rollout: Rollout) -> Rollout:
    """On the way back each old replica answers 1 / floor of the requests, and the canary what is left of its own."""
    back = replace(before, rollout=rollout, desired_replicas=rollout.desired_at_start, status=ROLLING_BACK)
    return with_weight(rollout, left_to_the_new(back, rollout))


def left_to_the_new(deployment: Deployment, rollout: Rollout) -> int:
    """Of 10,000 requests those that old replicas cannot answer, where each answers 1 / floor of them."""
    serving = [route.revision_id == rollout.to_revision_id for route in deployment.routes if route.is_serving]
    enough, old = min(promised(deployment).keep, len(serving)), serving.count(False)
    return ceil((1 - Fraction(old, enough)) * WHOLE) if old < enough else 0


def with_weight(rollout: Rollout, most: int) -> Rollout:
    """A canary that gets more gets less as soon as every proxy knows."""
    canary = rollout.canary
    if canary is None or not canary.weight or canary.weight <= most:
        return rollout
    return replace(rollout, canary=replace(canary, weight=most, weight_known_at=None))


def _routes_after(decision: ClassifiedDecision, now: datetime) -> list[Route]:
    changes, left, woken = decision.changes, [], dict(decision.changes.woken)
    for route in decision.deployment.routes:
        if route.id in changes.drain_route_ids:
            gone = replace(route, status=RouteStatus.TERMINATING, status_changed_at=now)
            left.append(replace(gone, traffic=TrafficStatus.INACTIVE))
        elif route.id in changes.park_route_ids:
            left.append(replace(route, traffic=TrafficStatus.INACTIVE, parked_until=changes.park_until))
        elif route.id in changes.promote_route_ids:
            left.append(replace(route, traffic=TrafficStatus.ACTIVE, parked_until=None))
        elif route.id in woken:
            left.append(replace(route, traffic=woken[route.id], parked_until=None, has_lent=False))
        else:
            left.append(route)
    for spec in changes.rollout_specs:
        new = Route(decision.deployment.id, spec.revision_id, RouteStatus.PROVISIONING, spec.traffic, now, now)
        left += [new] * spec.count
    return left


def after_news(
    before: Deployment, route: Route, status: RouteStatus, now: datetime, *, blame: bool = True
) -> Deployment:
    """One replica is found so: failed, come up, sick, or back. No revision is to blame for a host that is lost."""
    became = replace(route, status=status, status_changed_at=now)
    known, rollout = before.start_failures, before.rollout
    of_target = rollout is not None and rollout.to_revision_id == route.revision_id
    if status is RouteStatus.FAILED and blame:
        known = _one_more(known, route, now)
        if rollout and of_target:
            rollout = replace(rollout, failed_routes=rollout.failed_routes + 1)
    elif route.status is RouteStatus.PROVISIONING and status is RouteStatus.HEALTHY:
        if known and known.revision_id == route.revision_id:
            known = replace(known, came_up_at=known.came_up_at or now)
        if rollout and of_target:
            rollout = replace(rollout, last_progress_at=now)
    routes = [became if each.id == route.id else each for each in before.routes]
    left = tuple(each for each in routes if each.status is not RouteStatus.FAILED)
    return replace(before, version=before.version + 1, routes=left, rollout=rollout, start_failures=known)


def _one_more(known: StartFailures | None, route: Route, now: datetime) -> StartFailures:
    """The first again after another revision's, or once what came up has been well for a minute."""
    if known is None or known.revision_id != route.revision_id:
        return StartFailures(route.revision_id, 1, now)
    if known.came_up_at is not None and known.came_up_at + WELL_FOR_GOOD <= now:
        return StartFailures(route.revision_id, 1, now)
    short = known.short_lives + (known.came_up_at is not None)
    return StartFailures(route.revision_id, known.in_a_row + 1, now, None, short)
