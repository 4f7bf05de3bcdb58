"""Autoscaling: what the value of a metric means for the number of replicas.

no value, an old one, or one from before the last move    -> quiet
the comparison does not hold                              -> quiet
fewer replicas wanted while some did not answer           -> quiet
the clamped count is the present one, or the wrong way    -> quiet
the cooldown since the last move has not passed           -> quiet, until it has
otherwise                                                 -> it fires; of several rules the first that fires wins
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import isfinite
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MAX_RULES = 20
MAX_AGE_SECONDS = 30.0
"""How old a value may be unless a rule says otherwise: replicas are asked every 5 s, so six answers were missed."""

_MOST_REPLICAS = 10_000
_Replicas = Annotated[int, Field(ge=0, le=_MOST_REPLICAS, strict=True)]
MetricName = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$", max_length=200)]
_Label = Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=200)]
MetricNumber = Annotated[float, Field(allow_inf_nan=False, strict=True)]


class MetricSource(StrEnum):
    """Where a metric comes from: the replicas' Prometheus text endpoint, or another service that pushes it."""

    REPLICAS = "replicas"
    PUSHED = "pushed"


class Comparator(StrEnum):
    """How a value is held against the threshold."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="

    def holds(self, value: float, threshold: float) -> bool:
        """`value` (this) `threshold`."""
        match self:
            case Comparator.ABOVE:
                return value > threshold
            case Comparator.AT_LEAST:
                return value >= threshold
            case Comparator.BELOW:
                return value < threshold
            case Comparator.AT_MOST:
                return value <= threshold


class Aggregate(StrEnum):
    """How the values of several replicas become one."""

    AVG = "avg"
    SUM = "sum"
    MAX = "max"
    MIN = "min"

    def of(self, values: Sequence[float]) -> float | None:
        """The one value of one or more; None when it is no finite number."""
        match self:
            case Aggregate.AVG:
                one = sum(values) / len(values)
            case Aggregate.SUM:
                one = sum(values)
            case Aggregate.MAX:
                one = max(values)
            case Aggregate.MIN:
                one = min(values)
        return one if isfinite(one) else None


class AutoscalingRule(BaseModel):
    """When `metric` (comparator) `threshold`, `step` replicas more, or fewer when it is negative, within min and max.

    `path`, `labels` and `aggregate` are for metrics of replicas: each replica's value is the sum of its samples that
    carry these labels. `cooldown_seconds` count from the deployment's last autoscaling, whichever rule made it.
    A rule never moves against the sign of its step: a count outside min and max, which a person may set, stays until
    a rule that goes that way fires.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: MetricName
    source: MetricSource = MetricSource.REPLICAS
    path: str = Field(default="/metrics", pattern=r"^/[!-~]*$", max_length=200)
    labels: dict[_Label, _Label] = Field(default_factory=dict, max_length=10)
    aggregate: Aggregate = Aggregate.AVG
    comparator: Comparator
    threshold: MetricNumber
    step: int = Field(strict=True, ge=-_MOST_REPLICAS, le=_MOST_REPLICAS)
    min_replicas: _Replicas = 1
    max_replicas: _Replicas
    cooldown_seconds: float = Field(default=60.0, ge=0, le=86400)
    max_age_seconds: float = Field(default=MAX_AGE_SECONDS, gt=0, le=86400)

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.step == 0:
            raise ValueError("step must not be 0: it is how many replicas come, or go when it is negative")
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas ({self.min_replicas}) must be at most max_replicas ({self.max_replicas})")
        if self.source is MetricSource.PUSHED and not {"path", "labels", "aggregate"}.isdisjoint(self._chosen()):
            raise ValueError("path, labels and aggregate are for source 'replicas'; a pushed metric is one number")
        return self

    def _chosen(self) -> set[str]:
        """Fields that differ from their defaults."""
        return set(self.model_dump(exclude_defaults=True))

    @property
    def series(self) -> str:
        """What it reads, in words that are equal for two rules exactly when they read the same."""
        if self.source is MetricSource.PUSHED:
            return self.metric
        return f"{self.aggregate}({self.metric}{_braced(self.labels)}) at {self.path}"

    @property
    def metric_in_words(self) -> str:
        """As a person would call it."""
        labelled = f"{self.metric}{_braced(self.labels)}"
        return labelled if self.aggregate is Aggregate.AVG else f"{self.aggregate} of {labelled}"

    def __str__(self) -> str:
        within = f"{self.min_replicas} to {self.max_replicas}"
        return f"{self.metric_in_words} {self.comparator} {_number(self.threshold)}: {self.step:+d} ({within})"


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One line of a replica's metrics."""

    metric: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class MetricValue:
    """The value of a series at a time of the database's. `missing`: replicas that were asked and did not say."""

    series: str
    value: float
    at: datetime
    missing: int = 0


@dataclass(frozen=True, slots=True)
class Scaling:
    """A rule fired: the new count, and why."""

    desired: int
    reason: str


@dataclass(frozen=True, slots=True)
class Quiet:
    """A rule does not fire, and why; `until` when only its cooldown holds it back."""

    reason: str
    until: datetime | None = None


def evaluate_rules(
    rules: Iterable[AutoscalingRule],
    metrics: Iterable[MetricValue],
    desired: int,
    last_autoscaled_at: datetime | None,
    now: datetime,
) -> Scaling | None:
    """What the first rule that fires makes of `desired`; None when all are quiet."""
    judged = judge_rules(rules, metrics, desired, last_autoscaled_at, now)
    return next((one for one in judged if isinstance(one, Scaling)), None)


def judge_rules(
    rules: Iterable[AutoscalingRule],
    metrics: Iterable[MetricValue],
    desired: int,
    last_autoscaled_at: datetime | None,
    now: datetime,
) -> list[Scaling | Quiet]:
    """What each rule says, in their order."""
    values = {value.series: value for value in metrics}
    return [_judge(rule, values.get(rule.series), desired, last_autoscaled_at, now) for rule in rules]


def value_of_replicas(
    rule: AutoscalingRule, replicas: Sequence[Sequence[MetricSample]], now: datetime
) -> MetricValue | None:
    """The value of the rule's series from the samples of each replica; no samples for one that did not answer."""
    said = [value for samples in replicas if (value := _of_one_replica(rule, samples)) is not None]
    value = rule.aggregate.of(said) if said else None
    return None if value is None else MetricValue(rule.series, value, now, missing=len(replicas) - len(said))


def _of_one_replica(rule: AutoscalingRule, samples: Iterable[MetricSample]) -> float | None:
    """The sum of its samples that are meant and are numbers."""
    meant = [one.value for one in samples if one.metric == rule.metric and rule.labels.items() <= one.labels.items()]
    numbers = [value for value in meant if isfinite(value)]
    total = sum(numbers)
    return total if numbers and isfinite(total) else None


def _judge(
    rule: AutoscalingRule, value: MetricValue | None, desired: int, last: datetime | None, now: datetime
) -> Scaling | Quiet:
    name = rule.metric_in_words
    if value is None:
        return Quiet(f"{name} has no value yet")
    if not isfinite(value.value):
        return Quiet(f"{name} is no number")
    age = (now - value.at).total_seconds()
    if age > rule.max_age_seconds:
        return Quiet(f"the value of {name} is {age:.0f} s old, at most {rule.max_age_seconds:g} s are allowed")
    if not rule.comparator.holds(value.value, rule.threshold):
        return Quiet(f"{name} is {_number(value.value)}, not {rule.comparator} {_number(rule.threshold)}")
    holds = f"{name} is {_number(value.value)} {rule.comparator} {_number(rule.threshold)}"
    if last is not None and value.at <= last:
        return Quiet(f"{holds}, but was measured before the last move")
    if rule.step < 0 and value.missing:
        return Quiet(f"{holds}, but {value.missing} of the replicas did not say, so none is taken away")
    to = min(max(desired + rule.step, rule.min_replicas), rule.max_replicas)
    if (to - desired) * rule.step <= 0:
        return Quiet(f"{holds}, but there are {desired} replicas already ({_limit(rule)})")
    ready_at = last + timedelta(seconds=rule.cooldown_seconds) if last is not None else now
    if now < ready_at:
        return Quiet(f"{holds}, but the cooldown runs until {ready_at:%H:%M:%S}", ready_at)
    return Scaling(to, f"{holds}: from {desired} to {to} replicas ({_limit(rule)})")


def _limit(rule: AutoscalingRule) -> str:
    return f"at most {rule.max_replicas}" if rule.step > 0 else f"at least {rule.min_replicas}"


def _number(value: float) -> str:
    return f"{value:.10g}"


def _braced(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(labels.items())) + "}"
