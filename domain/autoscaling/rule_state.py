"""The snapshot's part for autoscaling: the rules, the values that they read, and when one fired last."""

from dataclasses import dataclass
from datetime import datetime

from domain.autoscaling.rule import AutoscalingRule


@dataclass(frozen=True, slots=True)
class MetricValue:
    """The value of a series at a time of the database's.

    `missing`: replicas that were asked and did not say, or proxies. `proxies`: how many should have said it, where they
    tell it; `silent`: the node ids of those that did not.
    """

    series: str
    value: float
    at: datetime
    missing: int = 0
    proxies: int = 0
    silent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AutoscalingState:
    """The rules of a ready deployment in their order, the `metrics` that they read, and when one fired last."""

    rules: tuple[AutoscalingRule, ...] = ()
    metrics: tuple[MetricValue, ...] = ()
    last_at: datetime | None = None


NO_AUTOSCALING = AutoscalingState()
