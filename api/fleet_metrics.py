"""The fleet's numbers for Prometheus: from Postgres and Redis, read at most once a second."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import redis
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.fleet_measures import MEASURES, EndedRollouts, FleetView, read_fleet
from domain.model.states import RolloutOutcome
from domain.strategies.builtin import STRATEGIES
from domain.traffic.request_counts import CLASSES, MOST_NAMED, WAITED_MS, Requests
from tasks.messaging.queues import COMMANDS_QUEUE, LIFECYCLE_QUEUE, ROUTES_QUEUE, host_queue
from tasks.redis.dead_letters import how_many_aside
from tasks.task_settings import KEY_PREFIX

_FRESH_SECONDS = 1.0
_QUEUES = (LIFECYCLE_QUEUE, ROUTES_QUEUE, COMMANDS_QUEUE)


@dataclass(frozen=True, slots=True)
class InRedis:
    """The contents of Redis: messages in each queue, of subscribers too, and messages ever put aside."""

    lengths: Mapping[str, int]
    subscriber_lengths: Mapping[str, int]
    put_aside: int


class FleetReader:
    """Reads on request. Requests within a second of a read, or during one, share its result."""

    def __init__(self, engine: Engine, redis_url: str) -> None:
        self._engine = engine
        self._redis = redis.Redis.from_url(
            redis_url, socket_timeout=2, socket_connect_timeout=2, retry=Retry(NoBackoff(), 0)
        )
        self._one_at_a_time = asyncio.Lock()
        self._text = b""
        self._read_at = float("-inf")

    async def text(self) -> bytes:
        """All metrics in Prometheus' text form. Raises Postgres' errors; when Redis is away a metric says so."""
        async with self._one_at_a_time:
            if time.monotonic() - self._read_at > _FRESH_SECONDS:
                self._text = await asyncio.to_thread(self._collect)
                self._read_at = time.monotonic()
            return self._text

    def _collect(self) -> bytes:
        registry = CollectorRegistry()
        with transaction(self._engine) as connection:
            fleet = read_fleet(connection)
        registry.register(_FoundMetrics(metrics_of(fleet, _read_redis(self._redis, fleet))))
        return generate_latest(registry)


class _FoundMetrics:
    """The metrics of one read, as a registry takes them."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Prometheus' client asks for them."""
        yield from self._metrics


def metrics_of(fleet: FleetView, in_redis: InRedis | None) -> list[Metric]:
    """All metrics of the fleet, those without a sample too."""
    return [*_of_postgres(fleet), *_of_redis(in_redis)]


def _of_postgres(fleet: FleetView) -> Iterator[Metric]:
    for measure in MEASURES:
        family = GaugeMetricFamily(measure.name, measure.help, labels=measure.labels)
        for labels, value in fleet.samples.get(measure.name, ()):
            family.add_metric(labels, value)
        yield family
    total = CounterMetricFamily("rollway_rollouts", "Rollouts that have ended", labels=("strategy", "outcome"))
    duration = HistogramMetricFamily(
        "rollway_rollout_duration_seconds", "From the start of a rollout to its end", labels=("strategy", "outcome")
    )
    for (strategy, outcome), ended in _ended(fleet).items():
        total.add_metric((strategy, outcome), sum(ended.buckets))
        duration.add_metric((strategy, outcome), _added_up(fleet.bounds, ended.buckets), ended.seconds)
    yield total
    yield duration
    yield from _of_callers(fleet.requests)


def _of_callers(by_revision: Mapping[tuple[str, str], Requests]) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "rollway_requests",
        f"Requests of callers, as proxies told, by what became of them; {MOST_NAMED} deployments are named,"
        " the others are (other), and who found no replica has no revision",
        labels=("deployment", "revision", "class"),
    )
    waited = HistogramMetricFamily(
        "rollway_first_byte_seconds",
        "From a request to the first byte of its answer, of the deployments that are named",
        labels=("deployment", "revision"),
    )
    for of, its in by_revision.items():
        for name, count in zip(CLASSES, its.classes, strict=True):
            requests.add_metric((*of, name), count)
        if any(its.waited):
            waited.add_metric(of, _added_up([edge / 1000 for edge in WAITED_MS], its.waited), None)
    yield requests
    yield waited


def _ended(fleet: FleetView) -> Mapping[tuple[str, str], EndedRollouts]:
    """Outcomes that have not occurred count as zero: Prometheus sees no increase from a missing sample."""
    nothing = (0,) * (len(fleet.bounds) + 1)
    empty = {(name, way.value): EndedRollouts(name, way, 0, nothing) for name in STRATEGIES for way in RolloutOutcome}
    return empty | {(ended.strategy, ended.outcome): ended for ended in fleet.ended}


def _added_up(bounds: Sequence[float], buckets: Sequence[int]) -> list[tuple[str, float]]:
    """Prometheus' buckets are cumulative: 1 0 2 becomes 1 1 3."""
    names = [*(f"{bound:g}" for bound in bounds), "+Inf"]
    return [(name, sum(buckets[: place + 1])) for place, name in enumerate(names)]


def _read_redis(client: redis.Redis, fleet: FleetView) -> InRedis | None:
    """None when Redis does not answer."""
    queues = [*_QUEUES, *(host_queue(host) for (host,), _ in fleet.samples["rollway_host_up"])]
    try:
        pipeline = client.pipeline(transaction=False)
        for queue in (*queues, *fleet.told_queues):
            pipeline.llen(f"{KEY_PREFIX}{queue}")
        answers = pipeline.execute()
        lengths, subscriber_lengths = answers[: len(queues)], answers[len(queues) :]
        both = dict(zip(queues, lengths, strict=True)), dict(zip(fleet.told_queues, subscriber_lengths, strict=True))
        return InRedis(*both, how_many_aside(client))
    except RedisError:
        return None


def _of_redis(in_redis: InRedis | None) -> Iterator[Metric]:
    answers = GaugeMetricFamily("rollway_redis_up", "Whether Redis answers the server for proxies")
    length = GaugeMetricFamily("celery_queue_length", "The number of messages in a queue", labels=("queue_name",))
    subscriber_length = GaugeMetricFamily(
        "rollway_subscription_queue_length",
        "The number of events in the queue of a subscription by task, that nobody has taken yet",
        labels=("queue_name",),
    )
    aside = CounterMetricFamily("rollway_messages_put_aside", "Messages that did not fit and were put aside")
    answers.add_metric((), in_redis is not None)
    if in_redis is not None:
        for queue, count in in_redis.lengths.items():
            length.add_metric((queue,), count)
        for queue, count in in_redis.subscriber_lengths.items():
            subscriber_length.add_metric((queue,), count)
        aside.add_metric((), in_redis.put_aside)
    yield from (answers, length, subscriber_length, aside)
