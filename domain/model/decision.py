"""A decision as plain data: the verdict, the changes of routes, and the wait."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, Self
from uuid import UUID

from domain.model.deployment import Hold, Route
from domain.model.states import TrafficStatus, Verdict
from domain.text.numbers import duration


class WaitsFor(StrEnum):
    """The kind of thing waited for."""

    NOTHING = "nothing"
    WORKER = "worker"
    PERSON = "person"
    ROUTE = "route"
    HOST = "host"
    DEVICE = "device"
    SECRET = "secret"  # noqa: S105  (the word, and no secret)
    PROXIES = "proxies"
    JUDGE = "judge"
    HOLD = "hold"
    TIME = "time"


class Inequality(NamedTuple):
    """A blocking comparison of `value` and `limit`. `words` has both numbers, such as "2 ready < 3"."""

    value: float
    relation: str
    limit: float
    words: str

    @property
    def holds(self) -> bool:
        """Whether it still blocks."""
        return self.value < self.limit if self.relation == "<" else self.value > self.limit


def too_short(passed: timedelta, needed: timedelta, what: str) -> Inequality:
    """The time `passed` is less than `needed`: "1 s in health < 30 s". Only full seconds count."""
    seconds = passed.total_seconds()
    least = f"{needed.total_seconds():g} s" if needed % timedelta(seconds=1) else duration(needed)
    words = f"{duration(timedelta(seconds=max(0, seconds // 1)))} {what} < {least}"
    return Inequality(seconds, "<", needed.total_seconds(), words)


COMES_TO = {"abort": "goes back", "activate": "gives it one"}
"""The effect of a typed command; every other one continues."""


@dataclass(frozen=True, slots=True)
class Waits:
    """A decision's wait. `words` describes the state: "1 new starting; 2 of 3 ready", "green is healthy".

    `routes`: the replicas that it waits for. `seconds`: the time that the policy gives them. `until`: when time alone
    may end it, where a judge looks before. `typed`: the command that a person must type. `blocked`: the inequalities
    that hold it, computed when they are read. `evidence`: the verdict of a judge so far, and what would decide it.
    """

    kind: WaitsFor
    words: str
    routes: tuple[Route, ...] = ()
    blocked: Iterable[Inequality] = ()
    seconds: float | None = None
    until: datetime | None = None
    typed: str = ""
    evidence: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """The sentence of a decision that waits: "waiting: 1 new starting; 2 of 3 ready"."""
        words = "; ".join((self.words, *self.evidence))
        if self.kind is WaitsFor.NOTHING or self.kind is WaitsFor.HOLD:
            return words
        if self.typed:
            return f"waiting: {words}; '{self.typed}' {COMES_TO.get(self.verb, 'continues')}"
        return f"waiting: {words}"

    @property
    def verb(self) -> str:
        """The command that a person must type, without its arguments; empty if none."""
        return self.typed.split()[1] if self.typed else ""

    @property
    def awaited_verb(self) -> str | None:
        """That command; None if it waits for no person."""
        return self.verb if self.kind is WaitsFor.PERSON else None

    @property
    def blocked_by(self) -> str | None:
        """The inequalities that still block, in words; None if there is none."""
        *most, last = [each.words for each in self.blocked if each.holds] or [""]
        return " and ".join(filter(None, (", ".join(most), last))) or None


@dataclass(frozen=True, slots=True)
class RouteCreatorSpec:
    """Create `count` routes of a revision; the database gives ids."""

    revision_id: UUID
    count: int
    traffic: TrafficStatus = TrafficStatus.ACTIVE


@dataclass(frozen=True, slots=True)
class Stage:
    """The next stage of a canary. `weight`: its share of 10,000 requests; None: all replicas share them."""

    number: int
    weight: int | None


@dataclass(frozen=True, slots=True)
class RouteChanges:
    """The changes of one cycle: routes that it creates, promotes, drains, parks and wakes; a canary's stage.

    A parked route runs without traffic until `park_until`. `woken`: with their traffic.
    """

    rollout_specs: tuple[RouteCreatorSpec, ...] = ()
    promote_route_ids: tuple[UUID, ...] = ()
    drain_route_ids: tuple[UUID, ...] = ()
    park_route_ids: tuple[UUID, ...] = ()
    park_until: datetime | None = None
    stage: Stage | None = None
    woken: tuple[tuple[UUID, TrafficStatus], ...] = ()

    def __bool__(self) -> bool:
        routes = self.rollout_specs or self.promote_route_ids or self.drain_route_ids or self.park_route_ids
        return bool(routes or self.woken or self.stage)

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.rollout_specs + other.rollout_specs,
            self.promote_route_ids + other.promote_route_ids,
            self.drain_route_ids + other.drain_route_ids,
            self.park_route_ids + other.park_route_ids,
            self.park_until or other.park_until,
            self.stage or other.stage,
            self.woken + other.woken,
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
        return cls((RouteCreatorSpec(revision_id, count, traffic),) if count > 0 else (), drain_route_ids=drain)

    @classmethod
    def promote(cls, route_ids: Iterable[UUID]) -> Self:
        return cls(promote_route_ids=tuple(route_ids))

    @classmethod
    def drain(cls, route_ids: Iterable[UUID]) -> Self:
        return cls(drain_route_ids=tuple(route_ids))

    @classmethod
    def park(cls, route_ids: Iterable[UUID], until: datetime) -> Self:
        parked = tuple(route_ids)
        return cls(park_route_ids=parked, park_until=until) if parked else cls()


_NO_CHANGES = RouteChanges()


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a cycle: the verdict, the route changes, and one plain sentence why.

    `recheck_at`: when a handler looks again, though nothing has changed. `clock_stopped`: the limits of the rollout
    stand still. `desired_replicas`: the new count of an autoscaling rule. `waits`: gives the reason.
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
        """The phase ends with these last changes."""
        return cls(Verdict.SUCCESS, reason, changes)

    @classmethod
    def moved(cls, reason: str, changes: RouteChanges, recheck_at: datetime | None = None) -> Self:
        """The cycle changes something, and the phase continues."""
        return cls(Verdict.NEED_RETRY, reason, changes, recheck_at)

    @classmethod
    def wait(cls, waits: Waits, recheck_at: datetime | None = None, *, clock_stopped: bool = False) -> Self:
        """Wait until something changes, or until `recheck_at`."""
        return cls(Verdict.SKIPPED, waits.reason, _NO_CHANGES, recheck_at, clock_stopped, None, waits)

    @classmethod
    def wait_for_person(cls, words: str, typed: str = "") -> Self:
        """Wait until a person types a command; no limit counts meanwhile. The evaluator fills in `typed`."""
        return cls.wait(Waits(WaitsFor.PERSON, words, typed=typed), clock_stopped=True)

    @classmethod
    def held(cls, hold: Hold) -> Self:
        """Wait until the hold ends; no limit counts meanwhile."""
        return cls.wait(Waits(WaitsFor.HOLD, hold.reason, until=hold.until), hold.until, clock_stopped=True)

    def waiting_for(self, waits: Waits) -> Self:
        """Replace the wait; the reason of a step stays."""
        return replace(self, waits=waits, reason=waits.reason if self.verdict is Verdict.SKIPPED else self.reason)

    @classmethod
    def give_up(cls, reason: str, *, harms: bool = False) -> Self:
        """The rollout cannot succeed. `harms`: callers are harmed, so all requests leave it at once."""
        return cls(Verdict.GIVE_UP, reason, harms=harms)
