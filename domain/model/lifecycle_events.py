"""The events that make deployments and routes move, their keys, and how often beat sends them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TypeVar

from domain.model.states import DeploymentSubStep
from domain.text.errors import InvalidInputError

E = TypeVar("E", bound=StrEnum)


class DeploymentLifecycleType(StrEnum):
    """The first half of an event's key: the kind of look at a deployment."""

    CHECK_PENDING = "check_pending"
    CHECK_REPLICA = "check_replica"
    SCALING = "scaling"
    RECONCILE = "reconcile"
    DEPLOYING = "deploying"
    DESTROYING = "destroying"


@dataclass(frozen=True, slots=True)
class DoDeploymentLifecycleEvent:
    """Run this handler now, over everything of its target statuses that is off."""

    lifecycle_type: DeploymentLifecycleType
    sub_step: DeploymentSubStep | None = None

    @classmethod
    def parse(cls, lifecycle_type: str, sub_step: str | None) -> Self:
        """The event of a message. Raises InvalidInputError naming the field and the words it may be."""
        return cls(
            member_of(DeploymentLifecycleType, "lifecycle_type", lifecycle_type),
            member_of(DeploymentSubStep, "sub_step", sub_step) if sub_step is not None else None,
        )

    @property
    def key(self) -> "DoDeploymentLifecycleEvent":
        """The key that a handler is registered by: the same for this event and for the one that says "if needed"."""
        return DoDeploymentLifecycleEvent(self.lifecycle_type, self.sub_step)

    def __str__(self) -> str:
        return f"{self.lifecycle_type}/{self.sub_step}" if self.sub_step else str(self.lifecycle_type)


@dataclass(frozen=True, slots=True)
class DoDeploymentLifecycleIfNeededEvent(DoDeploymentLifecycleEvent):
    """Run this handler if anything is marked for it: the short tick, and the wake after a change."""


@dataclass(frozen=True, slots=True)
class DeploymentTaskSpec:
    """Cadence of a handler in seconds. `short`: for marked deployments; `long`: for those that are off."""

    short: float | None
    long: float


def member_of(enum: type[E], name: str, value: str) -> E:
    """The member of `enum` with this value. Raises InvalidInputError with the field's name and the words it may be."""
    try:
        return enum(value)
    except ValueError:
        words = ", ".join(member.value for member in enum)
        raise InvalidInputError(f"{name} must be one of {words}, not {value!r}", field=name) from None


class RouteLifecycleType(StrEnum):
    """The kind of a look at routes."""

    START = "start"
    PROBE = "probe"
    STOP = "stop"
    SWEEP = "sweep"
    METRICS = "metrics"
    HOSTS = "hosts"


ROUTE_CADENCES: dict[RouteLifecycleType, float] = {
    RouteLifecycleType.SWEEP: 30,
    RouteLifecycleType.METRICS: 5,
    RouteLifecycleType.HOSTS: 2,
}
"""Seconds between two looks. Beat asks for the sweep, the alarm looks at hosts and asks for metrics where rules are."""

WHILE_THERE_IS_WORK = (RouteLifecycleType.START, RouteLifecycleType.PROBE, RouteLifecycleType.STOP)
"""Looks that the alarm asks for, each second, where there is something to look at; a change asks for them at once."""

ON_EACH_HOST = frozenset({*WHILE_THERE_IS_WORK, RouteLifecycleType.SWEEP})
"""Looks that only a worker on the replicas' own host can make; any worker asks those hosts for them."""
