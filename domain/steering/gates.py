"""Decides why a rollout may not move yet: a freeze window, or the other rollouts of its group.

an undo, or the way back                                  -> it may: what leads out of trouble waits for nobody
a freeze, and nothing of it has moved yet                 -> held until the freeze ends
a freeze that pauses                                      -> held until the freeze ends
something of it has moved                                 -> it may
the group has an order, and an earlier member rolls out   -> held
the group's places are taken, or asked for earlier        -> held
otherwise                                                 -> it may

At most 2 at once in a group; ■ has moved, ◇ has not, in the order in which they were asked for:

    ■ ◇ ◇    the first ◇ may, the second is held
    ■ ■ ◇    held
    ◇ ‖ ◇    both ◇ may: one that is paused, or frozen, takes no place before it moves

Freeze windows: the times in which nothing starts, their deployments, and their ends.

A window is absolute, or it begins by a cron line in a time zone and lasts for a duration:

    from 24 Dec 18:00 to 2 Jan 09:00           once
    0 18 * * FRI  Europe/Berlin  for 62 h      each weekend: 62 hours, however clocks are set meanwhile

A line that names an hour and a minute means what clocks show: an hour that is skipped in spring begins its windows at
its end, and one that comes twice in autumn begins them once, as it comes first. One with a * there means each of them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from uuid import UUID

from cronsim import CronSim

from domain.model.deployment import Hold
from domain.text.errors import RollwayError

_MOMENT, _SECOND = timedelta(microseconds=1), timedelta(seconds=1)
_JOINED = 1000
"""Overlapping windows are one; a cron line whose windows always overlap is followed for this number of windows."""


class FrozenError(RollwayError):
    """A freeze window is on; the message names it, when it ends and the way through."""


class FreezeNotFoundError(RollwayError):
    """No freeze has that name."""


@dataclass(frozen=True, slots=True)
class CronWindow:
    """Begins by a cron line of five fields in a time zone, and lasts for a duration."""

    cron: str
    zone: tzinfo
    duration: timedelta

    def ends(self, now: datetime) -> datetime | None:
        """The end of the window that is on, in UTC; None if none is."""
        return _end_of(self, now)

    def next_start(self, now: datetime) -> datetime | None:
        """The start of the next window, in UTC, even while one is on."""
        return next(_starts_after(self, now), None)

    def end(self, start: datetime) -> datetime:
        """The end of the window that begins then."""
        return start.astimezone(UTC) + self.duration


@lru_cache(maxsize=256)  # of a chunk of deployments each is held against every freeze at one time
def _end_of(window: CronWindow, now: datetime) -> datetime | None:
    last = _last_start(window, now)
    if last is None or now >= (end := window.end(last)):
        return None
    for start, _ in zip(_starts_after(window, last), range(_JOINED), strict=False):
        if start > end:
            break
        end = window.end(start)
    return end


def _last_start(window: CronWindow, now: datetime) -> datetime | None:
    """The latest start that is not after `now`. While an hour comes again, clocks have shown later times before."""
    local = (now + _MOMENT).astimezone(window.zone)  # one that begins now is on
    if not _is_by_the_clock(window.cron):
        last = next(CronSim(window.cron, local, reverse=True), None)
        return last.astimezone(UTC) if last else None
    first, again = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    local_time = local.replace(tzinfo=None) + max(first - again, timedelta()) * local.fold
    starts = (_shown_at(start, window.zone) for start in CronSim(window.cron, local_time, reverse=True))
    return next((start for start in starts if start <= now), None)


def _starts_after(window: CronWindow, instant: datetime) -> Iterator[datetime]:
    local = instant.astimezone(window.zone)
    if not _is_by_the_clock(window.cron):
        return (start.astimezone(UTC) for start in CronSim(window.cron, local))
    starts = (_shown_at(start, window.zone) for start in CronSim(window.cron, local.replace(tzinfo=None)))
    return (start for start in starts if start > instant)


def _is_by_the_clock(cron: str) -> bool:
    return not any(field.startswith("*") for field in cron.split()[:2])


def _shown_at(local_time: datetime, zone: tzinfo) -> datetime:
    """The first time at which clocks of a zone show this, in UTC; for a skipped time, the end of the gap."""
    before, after = (local_time.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if before <= after:
        return before
    earliest, latest, offset = after, before, before.astimezone(zone).utcoffset()
    while latest - earliest > _SECOND:
        middle = earliest + (latest - earliest) // _SECOND // 2 * _SECOND
        is_changed = middle.astimezone(zone).utcoffset() == offset
        earliest, latest = (earliest, middle) if is_changed else (middle, latest)
    return latest


@dataclass(frozen=True, slots=True)
class AbsoluteWindow:
    """A single window, from one instant to another."""

    starts_at: datetime
    ends_at: datetime

    def ends(self, now: datetime) -> datetime | None:
        """The end, while it is on."""
        return self.ends_at if self.starts_at <= now < self.ends_at else None

    def next_start(self, now: datetime) -> datetime | None:
        """The start, while it is still to come."""
        return self.starts_at if now < self.starts_at else None


@dataclass(frozen=True, slots=True)
class Freeze:
    """A named window. `deployments`: names, or beginnings of names with a * behind; with no `groups` either: all.

    `pauses`: what is under way waits too; otherwise it finishes.
    """

    name: str
    window: CronWindow | AbsoluteWindow
    deployments: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    pauses: bool = False
    reason: str = ""

    def covers(self, deployment: str, group: str | None) -> bool:
        """Whether it is over this deployment, which may be in a group."""
        if not self.deployments and not self.groups:
            return True
        return group in self.groups or any(_is_meant(deployment, pattern) for pattern in self.deployments)


@dataclass(frozen=True, slots=True)
class Frozen:
    """The freeze of this name is on, for this reason; and when it ends."""

    freeze: str
    reason: str
    until: datetime

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"freeze {self.freeze}{why} until {instant(self.until)}"

    def in_short(self, now: datetime) -> str:
        """Frozen until 18:15 UTC; with the day where that is another one."""
        until, today = self.until.astimezone(UTC), now.astimezone(UTC)
        return f"frozen until {until:%H:%M} UTC" if until.date() == today.date() else f"frozen until {instant(until)}"

    def refusal(self, deployment: str) -> FrozenError:
        """The refusal of anything that would start."""
        way = "wait until then, or go through it with --through-freeze and a --reason"
        message = f"nothing of {deployment} starts in the {self}; {way}"
        return FrozenError(message, deployment=deployment, freeze=self.freeze, until=self.until.isoformat())


def frozen(freezes: Iterable[Freeze], deployment: str, group: str | None, now: datetime) -> Frozen | None:
    """The freeze over this deployment that is on; of several the one that ends last."""
    over = (freeze for freeze in freezes if freeze.covers(deployment, group))
    ends = ((freeze, freeze.window.ends(now)) for freeze in over)
    on = [Frozen(freeze.name, freeze.reason, end) for freeze, end in ends if end is not None]
    return max(on, key=lambda window: (window.until, window.freeze), default=None)


def instant(at: datetime) -> str:
    """2026-12-24 17:00 UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _is_meant(deployment: str, pattern: str) -> bool:
    return deployment.startswith(pattern[:-1]) if pattern.endswith("*") else deployment == pattern


RECHECK_SECONDS = 2
"""The pause after which a rollout that waits for others of its group looks again."""


class GroupNotFoundError(RollwayError):
    """No group has that name."""


class GroupedAlreadyError(RollwayError):
    """The deployment is in another group; the message names it."""


@dataclass(frozen=True, slots=True)
class Group:
    """Deployments that share a budget of rollouts. `most_at_once`: None for any number.

    `in_order`: a deployment rolls out when none of those before it does.
    """

    name: str
    members: tuple[str, ...]
    most_at_once: int | None
    in_order: bool


@dataclass(frozen=True, slots=True)
class OpenRollout:
    """A rollout that has not ended, as the others of its group see it.

    `has_moved`: it has taken a step. `is_exit`: an undo, or on the way back. `through_freeze`: a person let it.
    """

    id: UUID
    deployment: str
    started_at: datetime
    has_moved: bool = False
    is_exit: bool = False
    is_paused: bool = False
    through_freeze: bool = False


@dataclass(frozen=True, slots=True)
class Gate:
    """The holds on rollouts: all freezes, and a group with its open rollouts, where the deployment is in one."""

    freezes: tuple[Freeze, ...] = ()
    group: Group | None = None
    rollouts: tuple[OpenRollout, ...] = ()

    def hold(self, rollout: OpenRollout, now: datetime) -> Hold | None:
        """The hold by the ladder, for a rollout that goes forward and is not paused."""
        if rollout.is_exit:
            return None
        if is_frozen := self._frozen(rollout, now):
            return Hold(f"held by the {is_frozen}; then it continues by itself", is_frozen.until)
        if self.group is None or rollout.has_moved:
            return None
        reason = self._before(rollout, self.group) or self._full(rollout, self.group, now)
        return Hold(reason, now + timedelta(seconds=RECHECK_SECONDS)) if reason else None

    def _frozen(self, rollout: OpenRollout, now: datetime) -> Frozen | None:
        if rollout.through_freeze:
            return None
        freezes = [freeze for freeze in self.freezes if freeze.pauses or not rollout.has_moved]
        return frozen(freezes, rollout.deployment, self.group.name if self.group else None, now)

    def _before(self, rollout: OpenRollout, group: Group) -> str:
        if not group.in_order:
            return ""
        earlier = group.members[: group.members.index(rollout.deployment)]
        busy = [other.deployment for other in self.rollouts if other.deployment in earlier]
        return f"waits for the rollout of {_names(busy)}: group {group.name} goes in order" if busy else ""

    def _full(self, rollout: OpenRollout, group: Group, now: datetime) -> str:
        if group.most_at_once is None:
            return ""
        busy = [other.deployment for other in self.rollouts if self._is_ahead(other, rollout, group, now)]
        if len(busy) < group.most_at_once:
            return ""
        return f"waits for the rollout of {_names(busy)}: group {group.name} has at most {group.most_at_once} at once"

    def _is_ahead(self, other: OpenRollout, rollout: OpenRollout, group: Group, now: datetime) -> bool:
        """Whether it has one of the places that `rollout` asks for."""
        if other.id == rollout.id:
            return False
        if other.has_moved or other.is_exit:
            return True
        if other.is_paused or (other.started_at, other.id) > (rollout.started_at, rollout.id):
            return False
        return not self._frozen(other, now) and not self._before(other, group)


def _names(names: Iterable[str]) -> str:
    """a, b and c; a, b, c and 2 more."""
    ordered = sorted(names)
    first, more = ordered[:3], len(ordered) - 3
    if more > 0:
        return f"{', '.join(first)} and {more} more"
    return " and ".join(filter(None, (", ".join(first[:-1]), first[-1])))
