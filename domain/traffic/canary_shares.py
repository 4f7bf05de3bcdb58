"""What proxies need of the stored settings of a canary, whichever release has written them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from domain.text.numbers import weight_of
from domain.traffic.caller_match import known_chosen
from domain.traffic.snapshot import Canary


def has_fresh_baseline(spec: Mapping[str, Any]) -> bool:
    """Whether these stored settings, of any strategy and release, compare with new replicas of the old revision."""
    judge = spec.get("judge")
    return isinstance(judge, Mapping) and judge.get("baseline") == "fresh"


def _mirrored(spec: Mapping[str, Any]) -> int:
    try:
        return weight_of(spec["mirror"]["share"])
    except (KeyError, TypeError, ValueError):
        return 0


@dataclass(frozen=True, slots=True)
class CanaryInTraffic:
    """A canary whose requests proxies share, or shared just now, with the stored settings of its rollout.

    `baseline`: the routes of its fresh baseline. `is_recent`: its own replicas may still answer.
    """

    deployment_id: UUID
    rollout_id: UUID
    has_ended: bool
    is_recent: bool
    weight: int | None
    stage: int
    floor: int
    spec: Mapping[str, Any]
    baseline: tuple[UUID, ...]

    @property
    def is_known_to_proxies(self) -> bool:
        """Whether a proxy may still need its cluster, or that of its baseline."""
        return self.is_recent or has_fresh_baseline(self.spec)

    @property
    def sharing(self) -> Canary:
        """The shares of requests. A stage without a weight is that of its mirror."""
        sticky = self.rollout_id if self.spec.get("sticky") is True else None
        baseline = frozenset(self.baseline) if has_fresh_baseline(self.spec) else None
        if self.has_ended:
            return Canary(sticky=sticky, baseline=baseline)
        mirrored = _mirrored(self.spec) if self.weight == 0 and self.stage > 0 else 0
        return Canary(self.weight, sticky, mirrored, baseline, self.floor, known_chosen(self.spec.get("match")))
