"""The devices as the cycle of one deployment sees them: a part of its snapshot, so that a step can be decided again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class DeviceRoom:
    """The room for replicas of revisions that need devices.

    `free`: by revision, the number of replicas that find their devices now. `shortage`: by revision, what a wait for
    its devices says. `turns`: old replicas in the order in which they should leave. `frees_at`: when the devices of a
    replica that has gone are free. `lent`: sleeping replicas whose devices others may have, and whether they could take
    them again now. `sleepers`: revisions whose parked replicas sleep, and lend their devices then.
    """

    free: Mapping[UUID, int] = field(default_factory=dict)
    shortage: Mapping[UUID, str] = field(default_factory=dict)
    turns: tuple[UUID, ...] = ()
    frees_at: datetime | None = None
    lent: Mapping[UUID, bool] = field(default_factory=dict)
    sleepers: tuple[UUID, ...] = ()
