"""Two ladders: to converge, and to keep a held rollout whole (`kept_whole`); and the pauses of failing starts.

Converge: bring one revision (the target) to n replicas and drain all others (foreign), within a budget.

If line 1 does not apply, one cycle does all of lines 2 to 4. "Sick too long" means unhealthy or degraded for 30 s.
Misplaced ones in traffic are foreign too.

    1  nothing foreign is left, all n of the target are ready   -> converged
    2  a replica of the target is out of traffic                -> bring it into traffic
    3  create = min(ceiling - live, n - those of the target that are not sick too long)
       with count_stopping: ceiling - live - stopping
       with alone: 0 until the last foreign replica has stopped
    4  drain the worst first, by the first case that finds some:
       foreign ones are live              -> all that are out of traffic, and of those in traffic
                                             at most target ready + foreign in traffic - keep,
                                             misplaced last: another revision may have no weight
       none foreign, target more than n   -> the surplus
       a sick one must be replaced, and
       the ceiling leaves no room for it  -> the sick one
    5  nothing to do in lines 2 to 4                            -> wait
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from domain.model.decision import Decision, Inequality, RouteChanges, Waits, WaitsFor, too_short
from domain.model.deployment import MOST_STARTS, Deployment, Route, StartFailures
from domain.model.states import ROLLING_BACK, RouteStatus, TrafficStatus, Verdict
from domain.strategies.budget import Buckets, Budget, ids, sick_too_long, well_placed, worst_first
from domain.strategies.messages import amount_of, creating, draining, for_replicas, steps
from domain.text.numbers import doubling_pause, number_of

LONGEST_PAUSE_SECONDS = 600
PROVEN_SECONDS = 60
"""A replica that has been well for this time clears the failures before it."""
SHORT_LIVES = 2
"""Short lives in a row that make a deployment degraded, though its replicas are well."""


def next_start_at(failures: StartFailures) -> datetime:
    return failures.last_at + doubling_pause(failures.in_a_row, first=2, longest=LONGEST_PAUSE_SECONDS)


def held_until(deployment: Deployment) -> datetime | None:
    """When the current revision may be tried; None if it is not held back."""
    failures = deployment.start_failures
    if failures is None or failures.revision_id != deployment.current_revision_id or failures.came_up_at is not None:
        return None
    return next_start_at(failures)


def nowhere_to_go(deployment: Deployment) -> Decision | None:
    """End a way back that has no replica left while starts fail."""
    failures = deployment.start_failures
    if failures is None or failures.in_a_row < MOST_STARTS:
        return None
    if deployment.active_routes or held_until(deployment) is None:
        return None
    return Decision(Verdict.EXPIRED, f"nothing to go back to: {failures.in_a_row} starts of it failed in a row")


def is_proven(failures: StartFailures, now: datetime) -> bool:
    """Whether the replica after the last failure has been well for long enough."""
    return failures.came_up_at is not None and now >= proven_at(failures.came_up_at)


def unproven(deployment: Deployment, now: datetime) -> tuple[str, datetime] | None:
    """Why a deployment with all its replicas is called degraded, and since when; None if it is not.

    `proven_at` ends this state.
    """
    failures = deployment.start_failures
    if failures is None or failures.revision_id != deployment.current_revision_id or failures.came_up_at is None:
        return None
    if failures.short_lives < SHORT_LIVES or is_proven(failures, now):
        return None
    often = f"replicas failed {failures.short_lives} times in a row soon after they had come up"
    return f"{often}; the last one has not been well for {PROVEN_SECONDS} s yet", failures.came_up_at


def proven_at(came_up_at: datetime) -> datetime:
    return came_up_at + timedelta(seconds=PROVEN_SECONDS)


def hold_back(decision: Decision, deployment: Deployment, now: datetime) -> Decision:
    """Limit creations of a failing revision: none while one starts, then one after 2, 4, 8 ... s, at most 10 minutes.

    A replica that comes up ends the wait:

        start  up  ends   pause 2 s   start  up  ends   pause 4 s   start  up: degraded  ends   pause 8 s   ...
        start  up  well for a minute: the mark goes, and the next failure is the first again
    """
    failures = deployment.start_failures
    if failures is None or failures.in_a_row == 0 or failures.came_up_at is not None:
        return decision
    creations = [spec for spec in decision.changes.rollout_specs if spec.revision_id == failures.revision_id]
    if not creations:
        return decision
    others = tuple(spec for spec in decision.changes.rollout_specs if spec.revision_id != failures.revision_id)
    start_at, tried_as = next_start_at(failures), (RouteStatus.PROVISIONING, failures.revision_id)
    starting = tuple(
        route for route in deployment.routes if (route.status, route.revision_id) == tried_as and not route.has_lent
    )
    failed = f"{number_of(failures.in_a_row, 'start')} failed{' in a row' if failures.in_a_row > 1 else ''}"
    if now >= start_at and not starting:
        changes = replace(decision.changes, rollout_specs=(*others, replace(creations[0], count=1)))
        reason = f"{decision.reason}; {failed}, so only 1 is tried" if creations[0].count > 1 else decision.reason
        return replace(decision, changes=changes, reason=reason)
    tried = "one is being tried" if starting else f"the next one is tried in {(start_at - now).total_seconds():.0f} s"
    why = f"{failed}; {tried}"
    later = min((at for at in (decision.recheck_at, start_at) if at and at > now), default=None)
    changes = replace(decision.changes, rollout_specs=others)
    if not changes:
        waits = _waits(why if starting else failed, failures, starting, now)  # its end says when the next one is tried
        return replace(Decision.wait(waits, later, clock_stopped=decision.clock_stopped), reason=f"waiting: {why}")
    goes_on_at_once = decision.recheck_at is not None and decision.recheck_at <= now
    recheck_at = now if goes_on_at_once else later
    return replace(decision, changes=changes, reason=f"{decision.reason}; {why}", recheck_at=recheck_at)


def _waits(words: str, failures: StartFailures, starting: tuple[Route, ...], now: datetime) -> Waits:
    """Wait for the replica that starts, or for the pause after the last failure."""
    if tried := len(starting):
        alone = Inequality(tried + 1, ">", 1, f"{tried} being tried + 1 > 1 at a time")
        return Waits(WaitsFor.ROUTE, words, starting, (alone,))
    pause = too_short(now - failures.last_at, next_start_at(failures) - failures.last_at, "after the last failure")
    return Waits(WaitsFor.TIME, words, blocked=(pause,))


def converge(deployment: Deployment, target: UUID, budget: Budget, now: datetime) -> Decision:
    """Decide the next step towards n replicas of `target` alone."""
    buckets = Buckets.of(deployment.routes, target, now, moves=not budget.alone)
    if budget.alone:
        buckets = buckets.unparked()
    idle = buckets.idle()
    if not buckets.foreign and len(buckets.target) == len(buckets.ready) == budget.desired and not idle:
        return Decision.success(f"{budget.desired} of {number_of(budget.desired, 'replica')} healthy")
    replaceable = buckets.replaceable(now)
    create = _shortfall(buckets, replaceable, budget)
    drained = _foreign(buckets, target, budget) if buckets.foreign else _surplus(buckets, budget)
    drained = drained or _in_the_way(buckets, replaceable, budget)
    promoted = [route for route in idle if route not in drained]
    changes = (
        RouteChanges.create(target, create) + RouteChanges.promote(ids(promoted)) + RouteChanges.drain(ids(drained))
    )
    if not changes:
        waits = for_replicas(_incomplete(buckets, budget), buckets, budget, now)
        return Decision.wait(waits, buckets.next_change_at(now))
    step = Decision.moved(
        steps(
            creating(create, buckets, budget),
            amount_of("bringing", len(promoted), "back into traffic"),
            draining(len(drained), budget),
        ),
        changes,
        now if promoted or drained else buckets.next_change_at(now),
    )
    return hold_back(step, deployment, now)


def _shortfall(buckets: Buckets, replaceable: tuple[Route, ...], budget: Budget) -> int:
    if budget.alone and (buckets.foreign or buckets.foreign_stopping):
        return 0
    return max(0, min(buckets.room(budget), budget.desired - (len(buckets.target) - len(replaceable))))


def _foreign(buckets: Buckets, target: UUID, budget: Budget) -> list[Route]:
    out = [route for route in buckets.foreign if route.traffic is TrafficStatus.INACTIVE]
    serving = [route for route in buckets.foreign if route.traffic is TrafficStatus.ACTIVE]
    ready = sum(route.traffic is TrafficStatus.ACTIVE for route in buckets.ready)
    spare = max(0, ready + len(serving) - budget.keep)
    ordered = sorted(worst_first(serving), key=lambda route: route.is_serving and route.revision_id == target)
    return worst_first(out) + ordered[:spare]


def _surplus(buckets: Buckets, budget: Budget) -> list[Route]:
    """n=3, 4 of the target, 1 of them sick: drain the sick one once 3 are ready.

    Until then a starting one counts as the replacement of a sick one.
    """
    surplus = len(buckets.target) - budget.desired
    if buckets.sick and len(buckets.ready) < budget.desired:
        surplus -= len(buckets.starting)
    return worst_first(buckets.target)[: max(0, surplus)]


def _in_the_way(buckets: Buckets, replaceable: tuple[Route, ...], budget: Budget) -> list[Route]:
    if buckets.starting or buckets.live < budget.ceiling:
        return []
    return worst_first(replaceable)[:1]


def _incomplete(buckets: Buckets, budget: Budget) -> str:
    return (
        f"{len(buckets.ready)} of {budget.desired} ready, {len(buckets.starting)} starting, "
        f"{len(buckets.sick)} unhealthy, {len(buckets.foreign)} of other revisions; "
        f"{buckets.occupied(budget)} of at most {budget.ceiling}"
    )


def kept_whole(deployment: Deployment, budget: Budget, before: Budget, now: datetime) -> Decision:
    """A held or paused rollout makes no progress, but dead replicas are replaced and a new size is applied.

    `before`: the budget for the size before the rollout.

    n = desired, and before the first step the size from before; "new" are live replicas of the deploying revision,
    "old" others. Those parked on a way back are neither.

    1  no new one                                 -> converge to the old revision, as at rest; to n where that is less,
                                                     or where old ones have grown beyond the size from before
    2  no old one, and it is on the way there, or
       nothing may run next to new ones           -> converge to the new revision, as at rest
    3  more live than the ceiling                 -> drain those above it, the sick first, then new ones
    4  fewer than n, without the sick and (where
       it is held or paused) the misplaced        -> create old ones, as far as the ceiling leaves room
       no room                                    -> drain a sick one, or misplaced ones within the floor
       more than n serve, some misplaced          -> drain those, but not the last of the current revision
    5  otherwise                                  -> wait

    n=3 surge=1, paused:   ■■|■  →  ■|■ one died  →  ■◇|■  →  ■■|■
    """
    current, target, rollout = deployment.current_revision_id, deployment.deploying_revision_id, deployment.rollout
    if current is None or target is None or rollout is None:
        raise ValueError(f"{deployment.name} is deploying without two revisions")
    parked = Buckets.of(deployment.routes, current, now).parked if deployment.status == ROLLING_BACK else ()
    buckets = Buckets.of((route for route in deployment.routes if route not in parked), target, now)
    if not buckets.target:
        well = len(well_placed(buckets.foreign, now))
        return converge(deployment, current, _resting(budget if well > before.desired else _less(budget, before)), now)
    goes_there = deployment.status.goes_forward and _has_begun(deployment)
    if not buckets.foreign and (goes_there or budget.alone):
        return converge(deployment, target, _resting(budget), now)
    live = (*buckets.target, *buckets.foreign)
    sick = sick_too_long(live, now)
    misplaced = [route for route in live if deployment.stands_still and route.is_misplaced and route not in sick]
    size = min(budget.desired, before.desired)
    shortfall = size - (len(live) - len(sick) - len(misplaced))
    create = max(0, min(shortfall, buckets.room(budget)))
    drained = _above(live, target, budget)
    is_coming = shortfall > 0 and len(live) < budget.ceiling  # or will be, once what stops leaves it room
    if not (drained or is_coming or any(route.status is RouteStatus.PROVISIONING for route in live)):
        spare = sum(route.is_serving for route in live) - max(budget.keep, size * (shortfall <= 0))
        last = worst_first(r for r in buckets.foreign if r.is_serving and r.revision_id == current)[-1:]
        moves = [route for route in worst_first(misplaced)[: max(0, spare)] if route not in last]
        drained = worst_first(sick)[: shortfall > 0] or moves
    changes = RouteChanges.create(current, create, drain=ids(drained))
    if not changes:
        return Decision.wait(Waits(WaitsFor.NOTHING, "the held rollout is whole"))
    reason = steps(creating(create, buckets, budget, "old"), draining(len(drained), budget))
    return Decision.moved(reason, changes, now if drained else None)


def sized_as_kept(deployment: Deployment) -> Deployment:
    """The deployment with the size from before, until the rollout's first step."""
    if deployment.rollout is None or _has_begun(deployment):
        return deployment
    return replace(deployment, desired_replicas=deployment.rollout.desired_at_start)


def _has_begun(deployment: Deployment) -> bool:
    return not deployment.stands_still or (deployment.rollout is not None and deployment.rollout.steps > 0)


def _less(budget: Budget, before: Budget) -> Budget:
    return budget if budget.desired < before.desired else before


def _resting(budget: Budget) -> Budget:
    """The budget at rest: n serve; without room for surge n - 1, and never none."""
    least = budget.desired - (1 < budget.desired == budget.ceiling)
    return budget if budget.alone else replace(budget, keep=max(budget.keep, least))


def meanwhile(wait: Decision, repairs: Decision, ends_at: datetime | None = None) -> Decision:
    """Combine a wait with repairs, or give up with them. `ends_at`: when time alone allows more."""
    if repairs.verdict is Verdict.GIVE_UP:
        return repairs
    times = (wait.recheck_at, repairs.recheck_at, ends_at)
    recheck_at = min((at for at in times if at is not None), default=None)
    if not repairs.changes:
        return replace(wait, recheck_at=recheck_at)
    reason = f"{wait.reason}; meanwhile {repairs.reason}"
    return replace(wait, verdict=Verdict.NEED_RETRY, reason=reason, changes=repairs.changes, recheck_at=recheck_at)


def _above(live: Iterable[Route], target: UUID, budget: Budget) -> list[Route]:
    """Replicas above the ceiling, within the floor: serving ones last, new before old ones."""
    ordered = sorted(worst_first(live), key=lambda route: (route.is_serving, route.revision_id != target))
    serving = sum(route.is_serving for route in ordered)
    spare = max(0, serving - budget.keep)
    return ordered[: max(0, min(len(ordered) - budget.ceiling, len(ordered) - serving + spare))]
