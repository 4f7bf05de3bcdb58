"""A decision as plain data: the verdict, and what the cycle does to routes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self
from uuid import UUID

from domain.model.hold import Hold
from domain.model.states import TrafficStatus, Verdict
from domain.model.waits import Waits, WaitsFor


@dataclass(frozen=True, slots=True)
class RouteCreatorSpec:
    """Create `count` routes of a revision. The database gives them their ids."""

    revision_id: UUID
    count: int
    traffic: TrafficStatus = TrafficStatus.ACTIVE


@dataclass(frozen=True, slots=True)
class Stage:
    """The next stage of a canary. `weight`: its share of 10,000 requests; None: all replicas share the requests."""

    number: int
    weight: int | None


@dataclass(frozen=True, slots=True)
class RouteChanges:
    """The changes of one cycle: routes that it creates, brings into traffic, drains or parks, and a canary's stage.

    A parked route runs without traffic until `park_until`.
    """

    rollout_specs: tuple[RouteCreatorSpec, ...] = ()
    promote_route_ids: tuple[UUID, ...] = ()
    drain_route_ids: tuple[UUID, ...] = ()
    park_route_ids: tuple[UUID, ...] = ()
    park_until: datetime | None = None
    stage: Stage | None = None

    def __bool__(self) -> bool:
        routes = self.rollout_specs or self.promote_route_ids or self.drain_route_ids or self.park_route_ids
        return bool(routes or self.stage)

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.rollout_specs + other.rollout_specs,
            self.promote_route_ids + other.promote_route_ids,
            self.drain_route_ids + other.drain_route_ids,
            self.park_route_ids + other.park_route_ids,
            self.park_until or other.park_until,
            self.stage or other.stage,
        )

    @property
    def created(self) -> int:
        """The number of routes that all specs create together."""
        return sum(spec.count for spec in self.rollout_specs)

    @classmethod
    def create(
        cls,
        revision_id: UUID,
        count: int,
        traffic: TrafficStatus = TrafficStatus.ACTIVE,
        *,
        drain: tuple[UUID, ...] = (),
    ) -> Self:
        """Create `count` routes, and drain these others."""
        return cls((RouteCreatorSpec(revision_id, count, traffic),) if count > 0 else (), drain_route_ids=drain)

    @classmethod
    def promote(cls, route_ids: Iterable[UUID]) -> Self:
        """Bring these routes into traffic."""
        return cls(promote_route_ids=tuple(route_ids))

    @classmethod
    def drain(cls, route_ids: Iterable[UUID]) -> Self:
        """Take these routes out of traffic, and then stop them."""
        return cls(drain_route_ids=tuple(route_ids))

    @classmethod
    def park(cls, route_ids: Iterable[UUID], until: datetime) -> Self:
        """Take these routes out of traffic, and keep them running until then."""
        parked = tuple(route_ids)
        return cls(park_route_ids=parked, park_until=until) if parked else cls()


_NO_CHANGES = RouteChanges()


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a cycle: the verdict, the route changes, and one plain sentence why.

    `recheck_at`: when a handler looks again, though nothing has changed. `clock_stopped`: the limits of the rollout
    stand still. `desired_replicas`: the new count that an autoscaling rule gives. `waits`: what a wait waits for, from
    which its reason is made.
    """

    verdict: Verdict
    reason: str
    changes: RouteChanges = _NO_CHANGES
    recheck_at: datetime | None = None
    clock_stopped: bool = False
    desired_replicas: int | None = None
    waits: Waits | None = None
    harms: bool = False

    def __post_init__(self) -> None:
        if self.verdict is Verdict.SKIPPED and self.waits is None:
            raise ValueError(f"a decision that waits says what for: {self.reason}")

    @classmethod
    def success(cls, reason: str, changes: RouteChanges = _NO_CHANGES) -> Self:
        """The phase has reached its end, with these last changes."""
        return cls(Verdict.SUCCESS, reason, changes)

    @classmethod
    def moved(cls, reason: str, changes: RouteChanges, recheck_at: datetime | None = None) -> Self:
        """The cycle changes something, and the phase goes on."""
        return cls(Verdict.NEED_RETRY, reason, changes, recheck_at)

    @classmethod
    def wait(cls, waits: Waits, recheck_at: datetime | None = None, *, clock_stopped: bool = False) -> Self:
        """Nothing to do until something changes, or until `recheck_at`."""
        return cls(Verdict.SKIPPED, waits.reason, _NO_CHANGES, recheck_at, clock_stopped, None, waits)

    @classmethod
    def wait_for_person(cls, words: str, typed: str = "") -> Self:
        """Wait until a person types a command; no limit counts meanwhile. A strategy leaves to others which one."""
        return cls.wait(Waits(WaitsFor.PERSON, words, typed=typed), clock_stopped=True)

    @classmethod
    def held(cls, hold: Hold) -> Self:
        """Wait until the hold ends; no limit counts meanwhile."""
        return cls.wait(Waits(WaitsFor.HOLD, hold.reason, until=hold.until), hold.until, clock_stopped=True)

    def waiting_for(self, waits: Waits) -> Self:
        """Tell the wait in other words; the reason of a step stays what it was."""
        return replace(self, waits=waits, reason=waits.reason if self.verdict is Verdict.SKIPPED else self.reason)

    @classmethod
    def give_up(cls, reason: str, *, harms: bool = False) -> Self:
        """The rollout cannot succeed any more. `harms`: its callers are harmed, so all requests leave it at once."""
        return cls(Verdict.GIVE_UP, reason, harms=harms)
