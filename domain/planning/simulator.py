"""One deployment in a simulated world: the shipped decisions, replicas whose fates are given, a clock that jumps.

    a replica comes up, fails or is gone  ──wake──▶  a look of the handler  ──▶  the next snapshot
    a time comes that the handler named   ──alarm──▶       "

There is no database and no chance here: only `Fates` draws. Proxies know each table at once.

Fates are sampled: a run is like a stretch of the past, scaled to the present.

    measured   2 2 2 2 2 2 3 3 3 4 4 4 4 4 4      the oldest first
               └─before──┘└like┘   └──now──┘
    drawn      one of `like`, times the median of `now` over that of `before`: 3 * 4 / 2 = 6

A busy machine is slow for all replicas of a rollout, and the next rollout finds it about as busy. So the past shows
how much times change from one rollout to the next, and the last ones show what they are now.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median
from uuid import UUID

from domain.cycle.effects import after
from domain.cycle.rollout import weight_known
from domain.cycle.transitions import ClassifiedDecision
from domain.devices.room import DeviceRoom
from domain.handlers.dispatch import cycle, woken_by
from domain.model.deployment import Deployment, Route
from domain.model.preparation import AT_ONCE, PreparationState
from domain.model.states import PREPARING, RouteStatus
from domain.planning.replica_timings import Timings
from domain.replicas.status_reports import reported

Change = tuple[Route, datetime, RouteStatus]
"""A replica, the time of its next change, and that change."""
_OPEN = (PreparationState.WAITING, PreparationState.RUNNING)
MOST_LOOKS = 100_000
"""A deployment that needs more looks than this never rests: its decisions are wrong."""


@dataclass(frozen=True, slots=True)
class Fate:
    """The fate of one replica, in seconds.

    `start_seconds`: from its creation until it is healthy, or has failed where `start_fails`.
    `stop_seconds`: from its drain until it is gone; None: it is gone at once, without a report.
    `lives_seconds`: the time in health after which it fails; None: it stays well.
    """

    start_seconds: float = 1.0
    start_fails: bool = False
    stop_seconds: float | None = None
    lives_seconds: float | None = None


@dataclass(slots=True)
class Fates:
    """The fates of a run: one for every replica; a look comes as soon as something has changed."""

    same: Fate = Fate()

    def of_replica(self) -> Fate:
        return self.same

    def prepare_seconds(self) -> float:
        """The seconds that one host takes to be prepared."""
        return 0

    def wake_seconds(self) -> float:
        """The seconds from the news of a replica to the look that follows."""
        return 0

    def alarm_seconds(self) -> float:
        """The seconds from a time that a handler named to the look that follows."""
        return 0


@dataclass(frozen=True, slots=True)
class SimulatedLook:
    """One look of a handler: its decision, and the snapshot after it."""

    at: datetime
    decision: ClassifiedDecision
    after: Deployment


@dataclass(slots=True)
class World:
    """A deployment on a clock that jumps to the next event: the end of a start or a stop, or a due look."""

    deployment: Deployment
    at: datetime
    fates: Fates = field(default_factory=Fates)
    looks: list[SimulatedLook] = field(default_factory=list)
    fate_of: dict[UUID, Fate] = field(default_factory=dict)
    prepared_at: dict[str, datetime] = field(default_factory=dict)
    due_at: datetime | None = None
    places: Mapping[UUID, int] = field(init=False)
    """By revision that needs devices, how many replicas have room where nobody else takes or leaves any."""

    def __post_init__(self) -> None:
        free = self.deployment.devices.free if self.deployment.devices else {}
        self.places = {revision: count + self._holding() for revision, count in free.items()}
        self.due_at = self.at + _seconds(self.fates.wake_seconds())

    @property
    def created(self) -> int:
        """The number of replicas that have been created so far."""
        return sum(look.decision.changes.created for look in self.looks)

    def run(self, seconds: float) -> None:
        """Run until nothing more can happen, or `seconds` have passed."""
        ends = self.at + _seconds(seconds)
        while self.step(ends):
            pass

    def step(self, ends: datetime) -> bool:
        """Jump to the next event; False when there is none until `ends`. Raises ValueError when it never rests."""
        changes = list(self._changes())
        at = self._next(changes)
        if at is None or at > ends:
            return False
        self.at = max(self.at, at)
        if by_now := [(route.id, status) for route, at, status in changes if at <= self.at]:
            self._replicas_change(by_now)
            self.look_soon()
        if ready := [host for host, at in self._preparations() if at <= self.at]:
            self.deployment = _with_prepared(self.deployment, ready)
            self.look_soon()
        if self.due_at is not None and self.due_at <= self.at:
            self._look()
        return True

    def look_soon(self) -> None:
        """Let a handler look, since something has changed."""
        soon = self.at + _seconds(self.fates.wake_seconds())
        self.due_at = soon if self.due_at is None else min(soon, self.due_at)

    def _look(self) -> None:
        if len(self.looks) == MOST_LOOKS:
            raise ValueError(f"{self.deployment.name} never rests: {self.looks[-1].decision.reason}")
        decision = cycle(self._with_room(), self.at)
        deployment = weight_known(after(decision, self.at), self.at)
        for route in deployment.routes[len(deployment.routes) - decision.changes.created :]:
            self.fate_of[route.id] = self.fates.of_replica()  # the replica may be gone by now
        drained = [route for route in deployment.routes if route.status is RouteStatus.TERMINATING]
        self.deployment = without(deployment, [route.id for route in drained if self._stops(route) is None])
        self.looks.append(SimulatedLook(self.at, decision, self.deployment))
        self.due_at = self._next_look(decision.due_at)

    def _holding(self) -> int:
        return sum(not route.has_lent for route in self.deployment.routes)

    def _with_room(self) -> Deployment:
        """Replicas hold their devices until they are gone, or sleep; one that is parked falls asleep at once."""
        room = self.deployment.devices
        if room is None:
            return self.deployment
        self.deployment = replace(self.deployment, routes=tuple(_asleep(r, room) for r in self.deployment.routes))
        free = {revision: max(0, most - self._holding()) for revision, most in self.places.items()}
        lent = {route.id: any(free.values()) for route in self.deployment.routes if route.has_lent}
        return replace(self.deployment, devices=replace(room, free=free, lent=lent))

    def _next_look(self, due_at: datetime | None) -> datetime | None:
        if due_at is None or any(self._preparations()):  # until then nothing but the end of a preparation matters
            return None
        later = self.fates.alarm_seconds() if due_at > self.at else self.fates.wake_seconds()
        return max(due_at, self.at) + _seconds(later)

    def _next(self, changes: Iterable[Change]) -> datetime | None:
        if woken_by(self.deployment.status) is None:
            return None
        times = (self.due_at, *(at for _, at, _ in changes), *(at for _, at in self._preparations()))
        return min((at for at in times if at is not None), default=None)

    def _changes(self) -> Iterator[Change]:
        """Yield the next change of each replica, with its time."""
        for route in self.deployment.routes:
            match route.status:
                case RouteStatus.PROVISIONING if not route.has_lent:
                    fate = self._fate(route)
                    status = RouteStatus.FAILED if fate.start_fails else RouteStatus.HEALTHY
                    yield route, route.created_at + _seconds(fate.start_seconds), status
                case RouteStatus.HEALTHY if (lives := self._fate(route).lives_seconds) is not None:
                    yield route, route.status_changed_at + _seconds(lives), RouteStatus.FAILED
                case RouteStatus.TERMINATING if (at := self._stops(route)) is not None:
                    yield route, at, RouteStatus.TERMINATED

    def _preparations(self) -> Iterator[tuple[str, datetime]]:
        """Yield the hosts that are at it, and when each is prepared."""
        is_preparing = self.deployment.status == PREPARING and self.deployment.desired_replicas
        open_ones = [each for each in self.deployment.preparations if is_preparing and each.state in _OPEN]
        for each in sorted(open_ones, key=lambda each: each.state is PreparationState.WAITING)[:AT_ONCE]:
            if each.host not in self.prepared_at:
                rest = max(0.0, self.fates.prepare_seconds() - (each.seconds or 0.0))
                self.prepared_at[each.host] = self.at + _seconds(rest)
            yield each.host, self.prepared_at[each.host]

    def _replicas_change(self, becomes: Sequence[tuple[UUID, RouteStatus]]) -> None:
        """Apply changes, failures first, as one report of all does."""
        for status in (RouteStatus.FAILED, RouteStatus.HEALTHY):
            if ids := [route_id for route_id, each in becomes if each is status]:
                self.deployment = with_status(self.deployment, ids, status, self.at)
        self.deployment = without(self.deployment, [route_id for route_id, s in becomes if s is RouteStatus.TERMINATED])

    def _fate(self, route: Route) -> Fate:
        fate = self.fate_of.get(route.id)
        if fate is None:
            fate = self.fate_of[route.id] = self.fates.of_replica()
        return fate

    def _stops(self, route: Route) -> datetime | None:
        takes = self._fate(route).stop_seconds
        return None if takes is None else route.status_changed_at + _seconds(takes)


def _asleep(route: Route, room: DeviceRoom) -> Route:
    sleeps = route.parked_until and route.revision_id in room.sleepers and route.status is RouteStatus.HEALTHY
    return replace(route, status=RouteStatus.PROVISIONING, has_lent=True) if sleeps else route


def with_status(
    deployment: Deployment, ids: Iterable[UUID], status: RouteStatus, now: datetime, *, blame: bool = True
) -> Deployment:
    """The deployment once these statuses are reported."""
    return reported(deployment, dict.fromkeys(ids, status), now, blame=blame)


def _with_prepared(deployment: Deployment, hosts: Sequence[str]) -> Deployment:
    preparations = (
        replace(each, state=PreparationState.DONE) if each.host in hosts else each for each in deployment.preparations
    )
    return replace(deployment, preparations=tuple(preparations))


def without(deployment: Deployment, ids: Iterable[UUID]) -> Deployment:
    """The deployment once these replicas are gone."""
    gone = set(ids)
    return replace(deployment, routes=tuple(r for r in deployment.routes if r.id not in gone)) if gone else deployment


def _seconds(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


Draw = Callable[[], float]
"""A number from 0 to below 1, another one each time; `random.Random(seed).random` is one."""

ALARM_SECONDS = 1.0
"""The alarm looks each second for times that handlers named."""
_FEWEST = 3
"""A stretch of the past has as many measurements as the rollout has replicas, and at least this number."""
_STRETCHES = 6
"""A past with fewer stretches than this does not show how times change, so its times are taken as they were."""
_ASSUMED_START_SECONDS = 1.0
_ASSUMED_STOP_SECONDS = 1.0


@dataclass(slots=True)
class LearnedFates(Fates):
    """The fates of one run, in which no start fails.

    `replicas`: how many the rollout has. `moment`: the stretch of the past that the run is like, from 0, the oldest, to
    1.
    """

    timings: Timings = field(default_factory=Timings)
    draw: Draw = lambda: 0.5
    replicas: int = _FEWEST
    moment: float = 0.5

    def __post_init__(self) -> None:
        self.moment = self.draw()

    def of_replica(self) -> Fate:
        return Fate(
            start_seconds=self._one_of(self.timings.starts, _ASSUMED_START_SECONDS, self.replicas),
            stop_seconds=self._one_of(self.timings.stops, _ASSUMED_STOP_SECONDS, self.replicas),
        )

    def prepare_seconds(self) -> float:
        """The seconds that one host takes to be prepared; 0 where none was."""
        return self._one_of(self.timings.preparations, 0, _FEWEST)

    def wake_seconds(self) -> float:
        """The seconds from the news of a replica to the look that follows."""
        return self._one_of(self.timings.wakes, 0, _FEWEST)

    def alarm_seconds(self) -> float:
        """The seconds from a time that a handler named to the look that follows: up to the interval of the alarm."""
        return self.draw() * ALARM_SECONDS

    def _one_of(self, samples: Sequence[float], assumed: float, in_a_row: int) -> float:
        if not samples:
            return assumed
        length = max(_FEWEST, min(in_a_row, len(samples) // _STRETCHES))
        before = 2 * length if len(samples) >= _STRETCHES * length else 0
        begins = before + round(self.moment * max(0, len(samples) - length - before))
        like = samples[begins : begins + length]
        return like[int(self.draw() * len(like))] * _change(samples[begins - before : begins], samples[-before:])


def _change(before: Sequence[float], now: Sequence[float]) -> float:
    """The factor by which times have grown since; 1 if none are known from before, or they were 0."""
    usual = median(before) if before else 0.0
    return median(now) / usual if usual > 0 else 1.0
