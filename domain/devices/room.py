"""The devices for one deployment, as a part of its snapshot, so that a step can be decided again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class DeviceRoom:
    """The room for replicas of revisions that need devices.

    `free`: by revision, the number of replicas that find their devices now. `shortage`: by revision, the clause of a
    wait for its devices. `turns`: old replicas in the order in which they should leave. `frees_at`: when the devices of
    a replica that has gone are free. `lent`: sleeping replicas that have lent their devices, and whether the devices
    are free now. `sleepers`: revisions whose parked replicas sleep and then lend their devices.
    """

    free: Mapping[UUID, int] = field(default_factory=dict)
    shortage: Mapping[UUID, str] = field(default_factory=dict)
    turns: tuple[UUID, ...] = ()
    frees_at: datetime | None = None
    lent: Mapping[UUID, bool] = field(default_factory=dict)
    sleepers: tuple[UUID, ...] = ()
