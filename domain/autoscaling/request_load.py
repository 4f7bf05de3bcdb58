"""The load of a deployment, from looks at its proxies' counters."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.autoscaling.rule import MetricValue, ProxyMetric

WINDOW_SECONDS = 10.0
"""The time over which a value is averaged: one moment of a quiet service, or of a busy one, says little."""


@dataclass(frozen=True, slots=True)
class DemandSeries:
    """The demand that rules with source 'proxy' read of a deployment.

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
    """The numbers that a proxy shows of a deployment, which it began `uptime` seconds ago.

    `requests`: answered since then, those among them for which there was no replica. `under_way`: answers at replicas
    that do not leave.
    """

    uptime: int
    requests: int
    under_way: int


@dataclass(frozen=True, slots=True)
class DemandLook:
    """Proxies' numbers of a deployment at one moment, by node id. `seconds`: when, on a clock that is never set.

    `expected`: the node ids of all that should tell. One that may still send requests is among them.
    """

    seconds: float
    expected: Collection[str]
    shown: Mapping[str, Shown]


def with_look(looks: Sequence[DemandLook], newest: DemandLook) -> tuple[DemandLook, ...]:
    """The looks that a value is made of, the newest last."""
    return (*(look for look in looks if 0 < newest.seconds - look.seconds <= WINDOW_SECONDS), newest)


def value_of_demand(series: DemandSeries, looks: Sequence[DemandLook], now: datetime) -> MetricValue | None:
    """The value of the series from one look or more, at the time of the newest; None if no proxy reports it.

    A proxy whose number is unknown, since it is new, has restarted or missed the last look, is silent. Where
    no replica serves, what is asked for counts as if there were one.
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


def _answers_under_way(samples: Sequence[tuple[float, Shown]]) -> float | None:
    return sum(sample.under_way for _, sample in samples) / len(samples) if samples else None


_SHARES: Mapping[ProxyMetric, Callable[[Sequence[tuple[float, Shown]]], float | None]] = {
    ProxyMetric.REQUESTS_PER_SECOND: _requests_per_second,
    ProxyMetric.ANSWERS_UNDER_WAY: _answers_under_way,
}
