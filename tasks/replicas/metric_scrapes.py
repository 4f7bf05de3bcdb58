"""The look at metrics: asks the replicas of deployments with rules, and marks the deployments to be scaled."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from functools import partial

from sqlalchemy import Engine

from db.commands.autoscaling import WatchedDeployment, store_and_mark, watched_deployments
from db.connection.transactions import in_transaction
from domain.autoscaling.rule import AutoscalingRule, MetricSource, MetricValue
from domain.autoscaling.scaling_decision import MetricSample, value_of_replicas
from runtime.probing.replica_metrics import MetricsPage, read_pages
from tasks.cycle.change_and_wake import change_and_wake
from tasks.redis.wake import Waker

_Pages = dict[tuple[str, str], MetricsPage]
"""The page of each replica's address and path."""


def look_at_metrics(engine: Engine, waker: Waker) -> bool:
    """Read what the rules read and wake check_replica when one fires; False, for the next look is the next tick's.

    check_replica decides again from what is stored here; it is not run for a deployment whose rules are quiet.
    """
    deployments, now = in_transaction(engine, watched_deployments)
    if not deployments:
        return False
    pages = {deployment.id: _pages(deployment) for deployment in deployments}
    samples = read_pages([page for own in pages.values() for page in own.values()])
    by_deployment, fires = {}, []
    for deployment in deployments:
        values = by_deployment[deployment.id] = _values_of(deployment, pages[deployment.id], samples, now)
        if deployment.fires(values, now):
            fires.append(deployment.id)
    change_and_wake(engine, waker, partial(store_and_mark, by_deployment=by_deployment, fires=fires))
    return False


def _scraped(deployment: WatchedDeployment) -> list[AutoscalingRule]:
    return [rule for rule in deployment.rules if rule.source is MetricSource.REPLICAS]


def _pages(deployment: WatchedDeployment) -> _Pages:
    """One page for each replica and path, whatever the number of rules that read it."""
    metrics: dict[str, set[str]] = defaultdict(set)
    for rule in _scraped(deployment):
        metrics[rule.path].add(rule.metric)
    return {
        (address, path): MetricsPage(address, path, frozenset(names), deployment.tls)
        for address in deployment.addresses
        for path, names in metrics.items()
    }


def _values_of(
    deployment: WatchedDeployment,
    pages: _Pages,
    samples: Mapping[MetricsPage, tuple[MetricSample, ...]],
    now: datetime,
) -> list[MetricValue]:
    """A value for each series that at least one replica knows; it is dated before the replicas were asked."""
    values = {
        rule.series: value_of_replicas(
            rule, [samples.get(pages[address, rule.path], ()) for address in deployment.addresses], now
        )
        for rule in _scraped(deployment)
    }
    return [value for value in values.values() if value is not None]
