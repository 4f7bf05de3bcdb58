"""An autoscaling rule: which metric, held against what, moves the count by how much and within which limits."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import isfinite
from operator import ge, gt, le, lt
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MAX_RULES = 20
MAX_AGE_SECONDS = 30.0
"""The oldest value that counts unless a rule sets another age: replicas are asked every 5 s, so six were missed."""

_MOST_REPLICAS = 10_000
_Replicas = Annotated[int, Field(ge=0, le=_MOST_REPLICAS, strict=True)]
MetricName = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$", max_length=200)]
_Label = Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=200)]
MetricNumber = Annotated[float, Field(allow_inf_nan=False, strict=True)]


class MetricSource(StrEnum):
    """The source of a metric: the Prometheus text page of replicas, another service that pushes it, or proxies."""

    REPLICAS = "replicas"
    PUSHED = "pushed"
    PROXY = "proxy"


class ProxyMetric(StrEnum):
    """The numbers that proxies tell of a deployment."""

    REQUESTS_PER_SECOND = "requests_per_second"
    ANSWERS_UNDER_WAY = "answers_under_way"


class Comparator(StrEnum):
    """The way a value is held against the threshold."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="

    def holds(self, value: float, threshold: float) -> bool:
        """`value` (this) `threshold`."""
        return _HOLDS[self](value, threshold)


_HOLDS: dict[Comparator, Callable[[float, float], bool]] = {
    Comparator.ABOVE: gt,
    Comparator.AT_LEAST: ge,
    Comparator.BELOW: lt,
    Comparator.AT_MOST: le,
}


class Aggregate(StrEnum):
    """The way the values of several replicas become one."""

    AVG = "avg"
    SUM = "sum"
    MAX = "max"
    MIN = "min"

    def of(self, values: Sequence[float]) -> float | None:
        """The one value of one or more; None when it is no finite number."""
        combined = sum(values) / len(values) if self is Aggregate.AVG else _COMBINES[self](values)
        return combined if isfinite(combined) else None


_COMBINES: dict[Aggregate, Callable[[Sequence[float]], float]] = {
    Aggregate.SUM: sum,
    Aggregate.MAX: max,
    Aggregate.MIN: min,
}


class AutoscalingRule(BaseModel):
    """Adds `step` replicas, or takes away if negative, within min and max, when `metric` (comparator) `threshold`.

    A rule never moves against the sign of its step: a count outside min and max, which a person may set, stays until
    a rule that goes that way fires.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: MetricName
    """The name of the metric, as replicas publish it or another service pushes it; of proxies: requests_per_second or
    answers_under_way."""
    source: MetricSource = MetricSource.REPLICAS
    """replicas: from the Prometheus text page of each; pushed: one number, by `rollway.push_metric`; proxy: as all live
    proxies tell."""
    path: str = Field(default="/metrics", pattern=r"^/[!-~]*$", max_length=200)
    """The path where replicas publish it."""
    labels: dict[_Label, _Label] = Field(default_factory=dict, max_length=10)
    """A replica's value is the sum of its samples that carry these labels."""
    aggregate: Aggregate = Aggregate.AVG
    """The way in which the replicas' values become one; values of proxies have only avg, for each replica, and sum."""
    comparator: Comparator
    """The comparison of the value with the threshold."""
    threshold: MetricNumber
    """The number that the value is compared with."""
    step: int = Field(strict=True, ge=-_MOST_REPLICAS, le=_MOST_REPLICAS)
    """The number of replicas that a firing rule adds, or removes where it is negative; not 0."""
    min_replicas: _Replicas = 1
    """The rule goes no further down."""
    max_replicas: _Replicas
    """The rule goes no further up."""
    cooldown_seconds: float = Field(default=60.0, ge=0, le=86400)
    """Counted from the deployment's last autoscaling, whichever rule made it."""
    max_age_seconds: float = Field(default=MAX_AGE_SECONDS, gt=0, le=86400)
    """The age beyond which a value fires nothing."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.step == 0:
            raise ValueError("step must not be 0: it is how many replicas come, or go when it is negative")
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas ({self.min_replicas}) must be at most max_replicas ({self.max_replicas})")
        self._fits_its_source()
        return self

    def _fits_its_source(self) -> None:
        """Raises ValueError."""
        set_fields = self._set_fields()
        match self.source:
            case MetricSource.PUSHED if not {"path", "labels", "aggregate"}.isdisjoint(set_fields):
                raise ValueError("path, labels and aggregate are for source 'replicas'; a pushed metric is one number")
            case MetricSource.PROXY if self.metric not in set(ProxyMetric):
                raise ValueError(f"metric must be {' or '.join(ProxyMetric)} where source is 'proxy'")
            case MetricSource.PROXY if not {"path", "labels"}.isdisjoint(set_fields):
                raise ValueError("path and labels are for source 'replicas'; proxies tell of the deployment as a whole")
            case MetricSource.PROXY if self.aggregate not in {Aggregate.AVG, Aggregate.SUM}:
                raise ValueError("aggregate must be avg, for each replica, or sum, of all, where source is 'proxy'")

    def _set_fields(self) -> set[str]:
        """Fields that differ from their defaults."""
        return set(self.model_dump(exclude_defaults=True))

    @property
    def series(self) -> str:
        """The read values, in words that are equal for two rules exactly when they read the same."""
        match self.source:
            case MetricSource.PUSHED:
                return self.metric
            case MetricSource.PROXY:
                return f"{self.aggregate}({self.metric}) of proxies"
            case MetricSource.REPLICAS:
                return self._series_of_replicas

    @property
    def _series_of_replicas(self) -> str:
        return f"{self.aggregate}({self.metric}{_braced(self.labels)}) at {self.path}"

    @property
    def metric_in_words(self) -> str:
        """The name that a person would use."""
        labelled = f"{self.metric}{_braced(self.labels)}"
        return labelled if self.aggregate is Aggregate.AVG else f"{self.aggregate} of {labelled}"

    def __str__(self) -> str:
        within = f"{self.min_replicas} to {self.max_replicas}"
        return f"{self.metric_in_words} {self.comparator} {number_in_words(self.threshold)}: {self.step:+d} ({within})"


def number_in_words(value: float) -> str:
    """A number in text, without an exponent up to ten digits."""
    return f"{value:.10g}"


def _braced(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(labels.items())) + "}"


@dataclass(frozen=True, slots=True)
class MetricValue:
    """The value of a series, with the database's time.

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
