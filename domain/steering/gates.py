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
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from domain.model.deployment import Hold
from domain.steering.freeze_windows import Freeze, Frozen, frozen
from domain.text.errors import RollwayError

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
            return Hold(f"held by the {is_frozen}; then it goes on by itself", is_frozen.until)
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
