"""One state of the search: a deployment, what is due, what its past holds for people, and what may still befall it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple, Self
from uuid import UUID

from domain.cycle.transitions import ClassifiedDecision
from domain.devices.room import DeviceRoom
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.steering.gates import AbsoluteWindow, Freeze, Gate, OpenRollout
from domain.strategies.in_place import with_devices
from tests.support.pictures.pictures import NOW, PROVISIONING

LONG = 2 * 1800
"""Seconds that a person lets a rollout wait: longer than any of its limits."""
_YEARS = AbsoluteWindow(NOW - timedelta(days=9999), NOW + timedelta(days=9999))
_GATE = Gate((Freeze("calm", _YEARS, pauses=True),))


class Left(NamedTuple):
    """How many misfortunes and commands may still come, and how many of both `together`."""

    misfortunes: int
    commands: int
    together: int

    def after_misfortune(self) -> Self:
        """One fewer."""
        return self._replace(misfortunes=self.misfortunes - 1)._within(self.together - 1)

    def after_command(self) -> Self:
        """One fewer."""
        return self._replace(commands=self.commands - 1)._within(self.together - 1)

    def _within(self, together: int) -> Self:
        return type(self)(min(self.misfortunes, together), min(self.commands, together), together)


class RolledBack(NamedTuple):
    """A rollout that went back. `size`: the one that came with its revision; `before`: the one that it went back to."""

    revision: UUID
    size: int | None = None
    before: int = 0
    is_undo: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """`previous`: what an undo at rest leads to. `rolled_back`: what a retry begins again.

    `held`: what a worker has decided and not written yet. `left`: what may still befall it. `frozen`: a freeze is on
    that pauses rollouts. `devices`: how many there are, where each replica needs one.
    """

    deployment: Deployment
    now: datetime
    due_at: datetime | None
    policy: DeploymentPolicy | None
    left: Left
    previous: UUID | None = None
    rolled_back: RolledBack | None = None
    held: ClassifiedDecision | None = None
    frozen: bool = False
    devices: int | None = None

    @property
    def seen(self) -> Deployment:
        """As a worker loads it: with the devices that are free, and a hold, which no undo and no way back has."""
        if self.devices is not None:
            return with_devices(self._held, device_room(self.deployment, self.devices, sleeps=self.sleeps))
        return self._held

    @property
    def sleeps(self) -> bool:
        """Whether parked replicas lend their devices."""
        return self.devices is not None and self.policy is not None and self.policy.spec.parked_seconds > 0

    @property
    def _held(self) -> Deployment:
        rollout = self.deployment.rollout
        if not self.frozen or rollout is None:
            return self.deployment
        is_exit = rollout.is_undo or self.deployment.status != PROVISIONING
        asks = OpenRollout(rollout.id, self.deployment.name, rollout.started_at, rollout.steps > 0, is_exit)
        return replace(self.deployment, hold=_GATE.hold(asks, self.now))

    @property
    def is_due(self) -> bool:
        """A worker looks at it now."""
        return self.due_at is not None and self.due_at <= self.now


def awake(deployment: Deployment) -> int:
    """The number of replicas that own a device."""
    return sum(not route.has_lent for route in deployment.routes)


def device_room(deployment: Deployment, devices: int, *, sleeps: bool = False) -> DeviceRoom:
    """The room where each replica holds one of so many devices until it is gone, or sleeps on whichever is free."""
    free = devices - awake(deployment)
    revisions = tuple(filter(None, (deployment.current_revision_id, deployment.deploying_revision_id)))
    return DeviceRoom(
        dict.fromkeys(revisions, free),
        dict.fromkeys(revisions, f"a GPU of {devices}"),
        lent={route.id: free > 0 for route in deployment.routes if route.has_lent},
        sleepers=tuple({route.revision_id for route in deployment.routes}) if sleeps else (),
    )


def without_devices(seen: Deployment, before: Deployment) -> Deployment:
    """What is stored of a deployment that was decided about: the room is read anew, and who is misplaced too."""
    if seen.devices is None:
        return seen
    misplaced = {route.id for route in before.routes if route.is_misplaced}
    routes = tuple(replace(route, is_misplaced=route.id in misplaced) for route in seen.routes)
    return replace(seen, devices=None, routes=routes)


class Move(NamedTuple):
    """One event and where it leads. `kind`: a world that means well does it too. `broken`: the law that it broke."""

    event: str
    state: State
    kind: bool = False
    said: str = ""
    broken: str | None = None


def is_fresh(decision: ClassifiedDecision, deployment: Deployment) -> bool:
    """The fence: what was decided from an older version is refused, so a state may forget it."""
    return decision.deployment.version == deployment.version


def still_held(state: State, deployment: Deployment) -> ClassifiedDecision | None:
    """What a stalled worker may still write, once the deployment is this."""
    return state.held if state.held is not None and is_fresh(state.held, deployment) else None


def changed(state: State, deployment: Deployment, *, misfortune: bool = False) -> State:
    """The state after news of its replicas: marked, so due now."""
    left = state.left.after_misfortune() if misfortune else state.left
    return replace(state, deployment=deployment, due_at=state.now, held=still_held(state, deployment), left=left)
