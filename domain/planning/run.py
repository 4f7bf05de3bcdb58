"""One run of the world from a snapshot to rest, as waves: a look that changes something is one, numbered as steps are.

wave 1   ■■■|     create 1, drain 1
wave 2   ■■|■     create 1, drain 1
wave 3   ■|■■     create 1, drain 1
wave 4   |■■■     completed
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple, Self

from domain.cycle.effects import back_reason_of
from domain.cycle.evaluator import EVALUATOR
from domain.cycle.rollout import guard_of
from domain.judge.judge import NOTHING_TOLD
from domain.model.decision import WaitsFor
from domain.model.deployment import Deployment, Rollout, Route
from domain.model.picture import picture
from domain.model.states import Lifecycle, RouteStatus
from domain.planning.simulator import Fates, SimulatedLook, World
from domain.text.numbers import WHOLE, number_of, percent
from domain.traffic.capacity import shared_out

_ROUNDING = 1.003
"""Weights are whole hundredths of a percent."""


class SideLoad(NamedTuple):
    """The load of each replica of a side: `times` what each would have, had all that serve an equal part of all.

    `share`: of 10,000 requests.
    """

    times: float
    replicas: int
    share: int


def loads(deployment: Deployment) -> list[SideLoad]:
    """One for each side that gets requests and has a replica that serves."""
    rollout, serving = deployment.rollout, [route for route in deployment.routes if route.is_serving]
    weight = rollout.canary.weight if rollout and rollout.canary else None
    new = sum(route.revision_id == deployment.deploying_revision_id for route in serving)
    sides = [(len(serving), WHOLE)]
    if rollout is not None and weight is not None and new < len(serving):
        old, fresh = len(serving) - new, min(new, _fresh(deployment, rollout))
        enough = min(guard_of(deployment).keep, len(serving))
        share, baseline_share = shared_out(weight, enough, new, fresh, old - fresh)
        sides = [(new, share), (old, WHOLE - share)]
        if baseline_share is not None:
            sides = [(new, share), (fresh, baseline_share), (old - fresh, WHOLE - share - baseline_share)]
    return [SideLoad(share / WHOLE / count, count, share) for count, share in sides if count and share]


def _fresh(deployment: Deployment, rollout: Rollout) -> int:
    """Count the serving ones of those with which the new ones are compared."""
    policy = rollout.policy
    return sum(route.is_serving for route in EVALUATOR.strategy_of(policy).control(deployment, rollout, policy.spec))


def busiest(before: Deployment, moments: Iterable[SideLoad]) -> str | None:
    """E.g. "2 replicas answer 90 % of the requests: 4.5 times what each answers now"; None if no share grows."""
    now, most = max(loads(before), default=None), max(moments, default=None)
    if now is None or most is None or most.times <= now.times * _ROUNDING:
        return None
    part = "all" if most.share == WHOLE else f"{percent(most.share)} of the"
    who = f"{number_of(most.replicas, 'replica')} answer{'s' * (most.replicas == 1)}"
    return f"at the busiest moment {who} {part} requests: {most.times / now.times:.3g} times what each answers now"


HORIZON_SECONDS = 31 * 86400.0
"""A rollout that has not ended by then is cut: no timeout may be longer than 30 days."""


@dataclass(frozen=True, slots=True)
class Stand:
    """Replicas at one moment: those that the ceiling counts, stopping ones, those that the floor counts, and all.

    Parked ones run, and are no budget's.
    """

    live: int
    stopping: int
    serving: int
    running: int

    @classmethod
    def of(cls, routes: Sequence[Route]) -> Self:
        """Count the live, stopping, serving and running ones of these."""
        active = sum(route.is_active for route in routes)
        live = sum(route.is_active and route.parked_until is None for route in routes)
        stopping = sum(route.status is RouteStatus.TERMINATING for route in routes)
        return cls(live, stopping, sum(route.is_serving for route in routes), active + stopping)


@dataclass(frozen=True, slots=True)
class Wave:
    """A decision that changes something, from the picture before it.

    `waits_for_person`: it came only after a person was asked to promote, who is taken to have done it at once;
    `waits_for_judge`: after the judge of a canary, who is taken to have found it good enough as soon as it may.
    """

    number: int
    create: int
    drain: int
    promote: int
    park: int
    picture: str
    why: str
    waits_for_person: bool
    waits_for_judge: bool

    @property
    def moves(self) -> tuple[int, int, int, int]:
        """The numbers of replicas that it creates, drains, promotes and parks."""
        return self.create, self.drain, self.promote, self.park


@dataclass(frozen=True, slots=True)
class Course:
    """The events of one run. `begins`: of each wave, in seconds after the beginning; `seconds`: until it rested.

    `seconds` is None if it never did; `back_reason`: why it went back. `busiest`: when few answer much, in words.
    `work`: replicas looked at, over all looks; `is_cut`: more of them were to be looked at than was allowed, so the
    rest of the run is not known.
    """

    waves: tuple[Wave, ...]
    begins: tuple[float, ...]
    seconds: float | None
    back_reason: str | None
    most_live: int
    most_running: int
    fewest_serving: int
    busiest: str | None
    end: Deployment
    work: int
    is_cut: bool

    @property
    def moves(self) -> tuple[tuple[int, int, int, int], ...]:
        return tuple(wave.moves for wave in self.waves)


def course(deployment: Deployment, now: datetime, fates: Fates, most_work: float = math.inf) -> Course:
    """Run until the rollout rests, or the most work is done. A paused rollout continues.

    A wait for a person's promotion ends at once, and that for a judge as soon as it may find a canary good enough.
    """
    run = _Run(World(replace(deployment, paused_at=None), now, fates))
    seconds = run.to_rest(most_work)
    return Course(
        tuple(run.waves()),
        tuple(run.times()),
        seconds,
        run.back_reason,
        max(stand.live for stand in run.stands),
        max(stand.running for stand in run.stands),
        min(stand.serving for stand in run.stands),
        busiest(deployment, run.loads),
        run.world.deployment,
        run.work,
        run.work > most_work,
    )


class _Run:
    """A world on its way to rest."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.begins = world.at
        self.work = 0
        self.stands = [Stand.of(world.deployment.routes)]
        self.loads = loads(world.deployment)
        self._promoted: set[int] = set()
        self._judged: set[int] = set()

    def to_rest(self, most_work: float) -> float | None:
        """Run it to rest; return its seconds, None if it has not rested by then or by the horizon, or nobody looks."""
        world, ends = self.world, self.begins + timedelta(seconds=HORIZON_SECONDS)
        while not is_at_rest(world):
            if not world.step(ends):
                return None
            self.stands.append(Stand.of(world.deployment.routes))
            self.loads += loads(world.deployment)
            self.work += len(world.deployment.routes)
            if self.work > most_work:
                return None
            self._promote()
        return (world.at - self.begins).total_seconds()

    def waves(self) -> Iterator[Wave]:
        """The looks that changed something."""
        for number, (place, look) in enumerate(self._changing(), 1):
            asks_judge = place in self._judged
            yield _wave(number, look, waits_for_person=place in self._promoted, waits_for_judge=asks_judge)

    def times(self) -> Iterator[float]:
        """Yield when each wave began, in seconds after the beginning."""
        return ((look.at - self.begins).total_seconds() for _, look in self._changing())

    @property
    def back_reason(self) -> str | None:
        """The reason why it went back, if it did."""
        return next((why for look in self.world.looks if (why := back_reason_of(look.decision))), None)

    def _changing(self) -> Iterator[tuple[int, SimulatedLook]]:
        return ((place, look) for place, look in enumerate(self.world.looks) if look.decision.changes_anything)

    def _promote(self) -> None:
        """A person, or a judge as soon as it may, ends a wait at once."""
        world, rollout = self.world, self.world.deployment.rollout
        last = world.looks[-1] if world.looks else None
        if rollout is None or last is None or (waits := last.decision.waits) is None or rollout.promote_requested:
            return
        promotions = {WaitsFor.PERSON: self._promoted, WaitsFor.JUDGE: self._judged}.get(waits.kind)
        if promotions is None:
            if waits.until and last.at == world.at:  # a judge looks each second, and sees nothing here
                world.due_at = waits.until + timedelta(seconds=world.fates.alarm_seconds())
            return
        promotions.add(len(world.looks))
        world.deployment = replace(world.deployment, rollout=replace(rollout, promote_requested=True))
        world.look_soon()


def is_at_rest(world: World) -> bool:
    """The last look found it ready, or no handler looks at it any more: the rollout is over."""
    if not world.looks:
        return False
    return world.looks[-1].decision.to.lifecycle in (Lifecycle.READY, Lifecycle.DESTROYED)


def _wave(number: int, look: SimulatedLook, *, waits_for_person: bool, waits_for_judge: bool) -> Wave:
    before, changes = look.decision.deployment, look.decision.changes
    line = picture(before.routes, before.current_revision_id, before.deploying_revision_id)
    return Wave(
        number,
        changes.created + len(changes.woken),
        len(changes.drain_route_ids),
        len(changes.promote_route_ids),
        len(changes.park_route_ids),
        line,
        look.decision.reason.removesuffix(f": {NOTHING_TOLD}"),  # there are no proxies in this world
        waits_for_person,
        waits_for_judge,
    )
