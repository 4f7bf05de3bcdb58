"""Blue-green: a complete green set comes up out of traffic, then all traffic moves to it in one transaction.

n = desired, the size of green; b = the size before the rollout, which blue keeps until the promotion:

    0  more than n greens                                 -> the worst of those out of traffic go, whatever else follows
    1  no green is live, and every one failed             -> give up: back at once
    2  n greens healthy and none of them sick too long or
       starting; promote asked, or auto_promote and its
       delay over                                         -> promote: green in, blue out, done
    3  until then blue converges to b by itself           -> replace what it lost, drain what is too many or left over
       and, in the same cycle, for green:
    4  a green starting                                   -> wait
    5  fewer than n greens live, or some sick too long    -> create what is missing, out of traffic
    6  fewer than n greens healthy                        -> wait
    7  otherwise                                          -> wait for the delay, or for a person

With scale_down_delay_seconds blue is parked: out of traffic but running, so that activating it again within that
time brings it back without a start.

n=2, b=2:   ■■|  →  ■■|◌◌  →  ■■|□□  →  |■■ promoted
n=3, b=2:   ■■|  →  ■■|◌◌◌  →  ■■|□□□  →  |■■■ promoted
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from pydantic import Field

from domain.model.decision import Decision, RouteChanges, Waits, WaitsFor, too_short
from domain.model.deployment import Deployment, Route
from domain.model.policy import StrategySpec
from domain.model.states import RouteStatus, TrafficStatus, Verdict
from domain.strategies.base import AbstractDeploymentStrategy, deploying_revision
from domain.strategies.budget import Buckets, Budget, ids, worst_first
from domain.strategies.converge import converge
from domain.strategies.messages import amount_of, for_replicas, steps
from domain.text.numbers import all_of


class BlueGreenSpec(StrategySpec):
    """Settings of a blue-green rollout."""

    auto_promote: bool = False
    """Whether a complete green set gets the traffic by itself; otherwise it waits for `promote`, without a deadline."""
    promote_delay_seconds: float = Field(default=0, ge=0, le=7 * 86400)
    """The time for which the newest green replica must be healthy before that; a person's promotion does not wait."""
    scale_down_delay_seconds: float = Field(default=0, ge=0, le=7 * 86400)
    """The time for which blue runs out of traffic after the promotion, for a way back without a start."""

    @property
    def parked_seconds(self) -> float:
        return self.scale_down_delay_seconds

    @property
    def waits(self) -> Mapping[str, float]:
        """Refuse a delay together with a promotion by a person, which waits for none."""
        return {"promote_delay_seconds": self.promote_delay_seconds} if self.auto_promote else {}


class BlueGreenStrategy(AbstractDeploymentStrategy[BlueGreenSpec]):
    """The ladder above."""

    spec_model: ClassVar[type[StrategySpec]] = BlueGreenSpec
    promotion: ClassVar[str | None] = "promoted as soon as green is healthy"
    exchange: ClassVar[str] = "with the promotion"

    def budget(self, spec: BlueGreenSpec, desired: int, before: int) -> Budget:  # noqa: ARG002  (whatever the spec)
        """Blue and green may both be whole. Blue's size serves until the promotion, which may leave a smaller green."""
        return Budget(desired, before + desired, min(before, desired))

    def evaluate_cycle(self, deployment: Deployment, spec: BlueGreenSpec, now: datetime) -> Decision:
        budget = self.budget_of(deployment, spec)
        every, surplus, buckets = _green(deployment, budget, now)
        failed = deployment.rollout.failed_routes if deployment.rollout else 0
        if not buckets.target and failed >= budget.desired > 0:
            return Decision.give_up(f"{all_of(failed, 'green replica')} failed")
        complete = not buckets.starting and not buckets.replaceable(now) and len(buckets.ready) >= budget.desired
        promote_at = _promote_at(buckets, spec, now)
        is_requested = deployment.rollout is not None and deployment.rollout.promote_requested
        if complete and (is_requested or (spec.auto_promote and now >= promote_at)):
            return _promoted(buckets, surplus, spec, now)
        blue = _keep_blue(deployment, every, budget, now)
        if complete:
            return _together(blue, _less(_wait_to_promote(spec, promote_at, now), surplus, now), buckets, now)
        room = max(0, every.room(budget) - blue.changes.created)
        green = _complete_green(deployment, buckets, budget, room, now)
        return _together(blue, _less(green, surplus, now), buckets, now)

    def keep_whole(self, deployment: Deployment, spec: BlueGreenSpec, now: datetime) -> Decision:
        """Blue by itself, and green once there is one and the rollout goes forward; more greens than n on no way."""
        budget = self.budget_of(deployment, spec)
        every, surplus, buckets = _green(deployment, budget, now)
        blue = _keep_blue(deployment, every, budget, now)
        has_green = buckets.target and deployment.status.goes_forward
        if not has_green or len(buckets.ready) >= budget.desired:
            times = (blue.recheck_at, buckets.next_change_at(now))
            blue = replace(blue, recheck_at=min((at for at in times if at is not None), default=None))
            return _less(blue, surplus, now)
        room = max(0, every.room(budget) - blue.changes.created)
        green = _complete_green(deployment, buckets, budget, room, now)
        return _together(blue, _less(green, surplus, now), buckets, now)


def _green(deployment: Deployment, budget: Budget, now: datetime) -> tuple[Buckets, list[Route], Buckets]:
    """Return all greens, those that are too many after a smaller size, the sick first, and all without these."""
    target = deploying_revision(deployment)
    every = Buckets.of(deployment.routes, target, now)
    idle = worst_first(route for route in every.target if not route.is_serving)
    surplus = sorted(idle, key=_is_healthy)[: max(0, len(every.target) - budget.desired)]
    if not surplus:
        return every, surplus, every
    return every, surplus, Buckets.of((route for route in deployment.routes if route not in surplus), target, now)


def _is_healthy(route: Route) -> bool:
    return route.status is RouteStatus.HEALTHY


def _less(decision: Decision, surplus: Sequence[Route], now: datetime) -> Decision:
    """Drain the surplus greens too. A wait for a person stays one: no clock runs."""
    if not surplus:
        return decision
    reason = f"{amount_of('draining', len(surplus), 'green')} too many; {decision.reason}"
    changes = RouteChanges.drain(ids(surplus)) + decision.changes
    return replace(decision, verdict=Verdict.NEED_RETRY, reason=reason, changes=changes, recheck_at=now)


def _promote_at(buckets: Buckets, spec: BlueGreenSpec, now: datetime) -> datetime:
    """The time when the newest green has been healthy for the delay; now without a delay."""
    if not buckets.ready:
        return now
    return max(route.status_changed_at for route in buckets.ready) + timedelta(seconds=spec.promote_delay_seconds)


def _promoted(buckets: Buckets, surplus: Sequence[Route], spec: BlueGreenSpec, now: datetime) -> Decision:
    blue, delay = worst_first(buckets.foreign), spec.scale_down_delay_seconds
    parked = ids(route for route in blue if delay and not route.is_misplaced)
    leave = RouteChanges.park(parked, now + timedelta(seconds=delay))
    leave += RouteChanges.drain(route_id for route_id in ids([*surplus, *blue]) if route_id not in parked)
    return Decision.success(
        f"promoted: {len(buckets.ready)} green in, {len(blue)} blue out",
        RouteChanges.promote(ids(buckets.idle())) + leave,
    )


def _keep_blue(deployment: Deployment, buckets: Buckets, budget: Budget, now: datetime) -> Decision:
    """Blue serves until the promotion, which may be days away: it converges within the room that green leaves."""
    if deployment.current_revision_id is None:
        raise ValueError(f"{deployment.name} is deploying without a current revision")
    target = deploying_revision(deployment)
    size = budget.ceiling - budget.desired  # green's place in the ceiling is taken, whether it is there yet or not
    green = len(buckets.target) + (len(buckets.stopping) if budget.count_stopping else 0)
    blue = replace(deployment, routes=tuple(route for route in deployment.routes if route.revision_id != target))
    within = Budget(size, budget.ceiling - max(budget.desired, green), size, budget.count_stopping)
    return converge(blue, deployment.current_revision_id, within, now)


def _complete_green(deployment: Deployment, buckets: Buckets, budget: Budget, room: int, now: datetime) -> Decision:
    of_all = f"{len(buckets.ready)} of {budget.desired} green healthy"
    if buckets.starting:
        return Decision.wait(for_replicas(f"{of_all}, {len(buckets.starting)} starting", buckets, budget, now))
    replaceable = buckets.replaceable(now)
    shortfall = max(0, budget.desired - len(buckets.target) + len(replaceable))
    create = min(shortfall, room)
    if create or replaceable:
        sentence = steps(
            amount_of("creating", create, "green out of traffic"), amount_of("draining", len(replaceable), "green")
        )
        changes = RouteChanges.create(deploying_revision(deployment), create, TrafficStatus.INACTIVE)
        changes += RouteChanges.drain(ids(replaceable))
        return Decision.moved(f"{sentence} ({of_all})", changes, now if replaceable else None)
    no_room = f"; no room to create {shortfall} ({buckets.occupied(budget)} of at most {budget.ceiling})"
    sentence = f"{of_all}, {len(buckets.sick)} unhealthy{no_room if shortfall else ''}"
    return Decision.wait(for_replicas(sentence, buckets, budget, now))


def _wait_to_promote(spec: BlueGreenSpec, promote_at: datetime, now: datetime) -> Decision:
    if spec.auto_promote:
        remaining, delay = promote_at - now, timedelta(seconds=spec.promote_delay_seconds)
        words = f"green is healthy, promoted in {remaining.total_seconds():.0f} s"
        return Decision.wait(
            Waits(WaitsFor.TIME, words, blocked=(too_short(delay - remaining, delay, "in health"),)), promote_at
        )
    return Decision.wait_for_person("green is healthy")


def _together(blue: Decision, green: Decision, buckets: Buckets, now: datetime) -> Decision:
    """Join the decisions about both. While blue is repaired a wait for a person stays one: no clock runs."""
    times = (blue.recheck_at, green.recheck_at, buckets.next_change_at(now))
    recheck_at = min((at for at in times if at is not None), default=None)
    if blue.changes:
        return replace(
            green,
            verdict=Verdict.NEED_RETRY,
            reason=f"blue: {blue.reason}; {green.reason}",
            changes=green.changes + blue.changes,
            recheck_at=recheck_at,
        )
    green = replace(green, recheck_at=recheck_at)
    if blue.waits is None or green.waits is None:
        return green
    return green.waiting_for(replace(green.waits, words=f"{green.waits.words}; blue: {blue.waits.words}"))
