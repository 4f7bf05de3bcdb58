"""What a cycle does to routes, as plain data."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Self
from uuid import UUID

from domain.model.deployment import TrafficStatus, Verdict
from domain.model.hold import Hold


@dataclass(frozen=True, slots=True)
class RouteCreatorSpec:
    """Create `count` routes of a revision. The database gives them their ids."""

    revision_id: UUID
    count: int
    traffic: TrafficStatus = TrafficStatus.ACTIVE


@dataclass(frozen=True, slots=True)
class Stage:
    """The next weight of a canary, and its number. `weight`: of 10,000 requests; None: all replicas share them."""

    number: int
    weight: int | None


@dataclass(frozen=True, slots=True)
class RouteChanges:
    """Routes to create, to bring into traffic, to drain, and to park out of traffic until a time; a canary's stage."""

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
        """Routes that are created, all specs together."""
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
        """`count` new routes, none at all for 0; and these others drained."""
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
        """Take these routes out of traffic and keep them running until then."""
        parked = tuple(route_ids)
        return cls(park_route_ids=parked, park_until=until) if parked else cls()


@dataclass(frozen=True, slots=True)
class Decision:
    """What a cycle found and wants: the verdict, the route changes, and one plain sentence why.

    `recheck_at`: when time alone may change the answer. `waits_for_person`: the clocks of the rollout stand still,
    since a person is waited for, a hold is on, or a canary is looked at. `desired_replicas`: a new count, from an
    autoscaling rule.
    """

    verdict: Verdict
    reason: str
    changes: RouteChanges = RouteChanges()
    recheck_at: datetime | None = None
    waits_for_person: bool = False
    desired_replicas: int | None = None

    @classmethod
    def success(cls, reason: str, changes: RouteChanges = RouteChanges()) -> Self:
        """The phase has reached its end, with these last changes."""
        return cls(Verdict.SUCCESS, reason, changes)

    @classmethod
    def moved(cls, reason: str, changes: RouteChanges, recheck_at: datetime | None = None) -> Self:
        """A step was taken: progress, and not the end."""
        return cls(Verdict.NEED_RETRY, reason, changes, recheck_at)

    @classmethod
    def wait(cls, reason: str, recheck_at: datetime | None = None) -> Self:
        """Nothing to do until something changes, or until `recheck_at`."""
        return cls(Verdict.SKIPPED, reason, recheck_at=recheck_at)

    @classmethod
    def wait_for_person(cls, reason: str) -> Self:
        """Nothing to do until somebody says so; no deadline runs meanwhile."""
        return cls(Verdict.SKIPPED, reason, waits_for_person=True)

    @classmethod
    def held(cls, hold: Hold) -> Self:
        """Nothing may be done before a time; no deadline runs meanwhile."""
        return cls(Verdict.SKIPPED, hold.reason, recheck_at=hold.until, waits_for_person=True)

    @classmethod
    def look_on(cls, reason: str, until: datetime | None) -> Self:
        """A canary has its share of the requests until then, or until a person says so; no deadline runs meanwhile."""
        return cls(Verdict.SKIPPED, reason, recheck_at=until, waits_for_person=True)

    @classmethod
    def give_up(cls, reason: str) -> Self:
        """The rollout cannot succeed any more."""
        return cls(Verdict.GIVE_UP, reason)
