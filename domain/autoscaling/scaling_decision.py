"""Autoscaling: the number of replicas that follows from the value of a metric.

no value, an old one, or one from before the last move    -> quiet
the comparison does not hold                              -> quiet
fewer are wanted while a replica or a proxy is silent     -> quiet
the count, within its limits, would not move that way     -> quiet
the cooldown since the last move has not passed           -> quiet, until it has
otherwise                                                 -> it fires; of several rules the first that fires wins
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite
from uuid import UUID

from domain.autoscaling.rule import AutoscalingRule, MetricSource, MetricValue, ProxyMetric, number_in_words
from domain.text.numbers import number_of

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class MetricSample:
    """A line of a replica's metrics."""

    metric: str
    labels: Mapping[str, str]
    value: float


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
    """The result of the first rule that fires; None if all are quiet."""
    outcomes = judge_rules(rules, metrics, desired, last_autoscaled_at, now)
    return next((outcome for outcome in outcomes if isinstance(outcome, Scaling)), None)


def judge_rules(
    rules: Iterable[AutoscalingRule],
    metrics: Iterable[MetricValue],
    desired: int,
    last_autoscaled_at: datetime | None,
    now: datetime,
) -> list[Scaling | Quiet]:
    values = {value.series: value for value in metrics}
    return [_judge(rule, values.get(rule.series), desired, last_autoscaled_at, now) for rule in rules]


def value_of_replicas(
    rule: AutoscalingRule, replicas: Sequence[Sequence[MetricSample]], now: datetime
) -> MetricValue | None:
    """The value of the rule's series from the samples of each replica; a replica that did not answer has none."""
    answers = [value for samples in replicas if (value := _of_one_replica(rule, samples)) is not None]
    value = rule.aggregate.of(answers) if answers else None
    return None if value is None else MetricValue(rule.series, value, now, missing=len(replicas) - len(answers))


def _of_one_replica(rule: AutoscalingRule, samples: Iterable[MetricSample]) -> float | None:
    """The sum of the samples that belong to the series and are numbers."""
    in_scope = [
        sample.value
        for sample in samples
        if sample.metric == rule.metric and rule.labels.items() <= sample.labels.items()
    ]
    numbers = [value for value in in_scope if isfinite(value)]
    total = sum(numbers)
    return total if numbers and isfinite(total) else None


def _judge(
    rule: AutoscalingRule, value: MetricValue | None, desired: int, last: datetime | None, now: datetime
) -> Scaling | Quiet:
    name = rule.metric_in_words
    if value is None:
        hint = ": no proxy has told it" if rule.source is MetricSource.PROXY else ""
        return Quiet(f"{name} has no value yet{hint}")
    if not isfinite(value.value):
        return Quiet(f"{name} is no number")
    age = (now - value.at).total_seconds()
    if age > rule.max_age_seconds:
        return Quiet(f"the value of {name} is {age:.0f} s old, at most {rule.max_age_seconds:g} s are allowed")
    if not rule.comparator.holds(value.value, rule.threshold):
        return Quiet(
            f"{name} is {number_in_words(value.value)}, not {rule.comparator} {number_in_words(rule.threshold)}"
            f"{_told_by(value)}"
        )
    holds = (
        f"{name} is {number_in_words(value.value)} {rule.comparator} {number_in_words(rule.threshold)}{_told_by(value)}"
    )
    if last is not None and value.at <= last:
        return Quiet(f"{holds}, but was measured before the last move")
    if rule.step < 0 and value.missing:
        return Quiet(f"{holds}, but {_who_is_missing(value)}")
    to = min(max(desired + rule.step, rule.min_replicas), rule.max_replicas)
    if (to - desired) * rule.step <= 0:
        return Quiet(f"{holds}, but there are {number_of(desired, 'replica')} already ({_limit(rule)})")
    ready_at = last + timedelta(seconds=rule.cooldown_seconds) if last is not None else now
    if now < ready_at:
        return Quiet(f"{holds}, but the cooldown runs until {ready_at:%H:%M:%S}", ready_at)
    return Scaling(to, f"{holds}: from {desired} to {number_of(to, 'replica')} ({_limit(rule)})")


def _limit(rule: AutoscalingRule) -> str:
    return f"at most {rule.max_replicas}" if rule.step > 0 else f"at least {rule.min_replicas}"


def _told_by(value: MetricValue) -> str:
    if not value.proxies:
        return ""
    proxies = "the one proxy" if value.proxies == 1 else f"{value.proxies - value.missing} of {value.proxies} proxies"
    return f", as {proxies} told"


def _who_is_missing(value: MetricValue) -> str:
    if not value.silent:
        return f"{value.missing} of the replicas did not say, so none is taken away"
    first, others = value.silent[:_MOST_NAMED], len(value.silent) - _MOST_NAMED
    names = ", ".join(first) + (f" and {others} more" if others > 0 else "")
    return f"{names} did not say, so no replica is taken away"


WINDOW_SECONDS = 10.0
"""The time over which a value is averaged: a single moment says little."""


@dataclass(frozen=True, slots=True)
class DemandSeries:
    """The demand on a deployment, as rules with source 'proxy' read it.

    `serving`: its healthy replicas in traffic. `is_per_replica`: the number for each of them, not for all together.
    """

    deployment_id: UUID
    deployment: str
    serving: int
    series: str
    metric: ProxyMetric
    is_per_replica: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """The counts of one proxy for a deployment since the proxy began, `uptime` seconds ago.

    `requests`: answered since then, those among them for which there was no replica. `under_way`: answers at replicas
    that do not leave.
    """

    uptime: int
    requests: int
    under_way: int


@dataclass(frozen=True, slots=True)
class DemandLook:
    """Proxies' numbers of a deployment at one moment, by node id. `seconds`: when, on a clock that is never set.

    `expected`: the node ids of all proxies that should report, including any that may still send requests.
    """

    seconds: float
    expected: Collection[str]
    shown: Mapping[str, Shown]


def with_look(looks: Sequence[DemandLook], newest: DemandLook) -> tuple[DemandLook, ...]:
    """The looks that a value is made of, the newest last."""
    return (*(look for look in looks if 0 < newest.seconds - look.seconds <= WINDOW_SECONDS), newest)


def value_of_demand(series: DemandSeries, looks: Sequence[DemandLook], now: datetime) -> MetricValue | None:
    """The value of the series from one look or more, at the time of the newest; None if no proxy reports it.

    A proxy that is new, has restarted or missed the last look has no number, and counts as silent. Where no replica
    serves, requests count as if there were one.
    """
    expected = looks[-1].expected
    share_of = _SHARES[series.metric]
    shares = {node: share for node in expected if (share := share_of(list(_in_a_row(node, looks)))) is not None}
    if not shares:
        return None
    value = sum(shares.values()) / (max(1, series.serving) if series.is_per_replica else 1)
    silent = tuple(sorted(set(expected) - shares.keys()))
    return MetricValue(series.series, value, now, len(silent), len(expected), silent)


def _in_a_row(node: str, looks: Sequence[DemandLook]) -> Iterator[tuple[float, Shown]]:
    """Yield a proxy's counters, the newest first, back to a missed look or its restart."""
    later: Shown | None = None
    for look in reversed(looks):
        sample = look.shown.get(node)
        if sample is None or (later and (sample.uptime > later.uptime or sample.requests > later.requests)):
            return
        yield look.seconds, sample
        later = sample


def _requests_per_second(samples: Sequence[tuple[float, Shown]]) -> float | None:
    if len(samples) < 2:  # noqa: PLR2004  (a difference takes two)
        return None
    (ends, last), (begins, first) = samples[0], samples[-1]
    return (last.requests - first.requests) / (ends - begins)


_SHARES: Mapping[ProxyMetric, Callable[[Sequence[tuple[float, Shown]]], float | None]] = {
    ProxyMetric.REQUESTS_PER_SECOND: _requests_per_second,
    ProxyMetric.ANSWERS_UNDER_WAY: lambda samples: (
        sum(sample.under_way for _, sample in samples) / len(samples) if samples else None
    ),
}
