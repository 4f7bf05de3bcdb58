"""Replicas at whose port a program of another user, or another replica, listens and answers."""

import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from db.replicas.host_routes import RouteRow
from domain.model.states import RouteStatus
from runtime.probing.http1 import ProbeAnswer
from runtime.protocol import Replica

_FORGIVEN = 5
_WITHIN_SECONDS = 600.0
"""A revision is not to blame for a few strangers in this time: it starts again at once, at another port."""


@dataclass(eq=False, slots=True)
class Strangers:
    """Counts, by deployment, how often one had a port. A worker process has one for all its passes."""

    clock: Callable[[], float] = time.monotonic
    _times: dict[UUID, deque[float]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=_FORGIVEN)))

    def forgives(self, deployment_id: UUID) -> bool:
        """Whether this once more is no failed start: one that takes every port would keep a host busy without end."""
        now, times = self.clock(), self._times[deployment_id]
        is_forgiven = len(times) < _FORGIVEN or now - times[0] > _WITHIN_SECONDS
        times.append(now)
        return is_forgiven


def held_in_words(route: RouteRow, replica: Replica | None) -> str:
    """Say who has its port; empty where nobody else does, or where it served before it ended."""
    if replica is None or not replica.stranger:
        return ""
    if not replica.running and route.status is not RouteStatus.PROVISIONING:
        return ""
    return f"port {(route.address or '').rpartition(':')[2]} is held by {replica.stranger}"


def is_to_be_verified(route: RouteRow, answer: ProbeAnswer | None) -> bool:
    """Whether an answer would count for the first time: before that somebody has to see whose it is."""
    good = answer is not None and answer.ok
    return good and route.status is RouteStatus.PROVISIONING and route.spec.runtime == "process"


def verified(route: RouteRow, answer: ProbeAnswer, replica: Replica | None) -> ProbeAnswer:
    """The answer, where the replica itself listens now, or nobody can say."""
    if replica is None or replica.listens is False:
        return ProbeAnswer(ok=False, detail=f"{route.address} answered, and its process does not listen there")
    return answer
