"""The value of a metric, as a snapshot holds it."""

from dataclasses import dataclass
from datetime import datetime


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
