"""The look at metrics: replicas of deployments with rules are asked, and who is to be scaled is marked."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Engine

from db.commands.autoscaling import WatchedDeployment, store_and_mark, watched_deployments
from db.engine import in_transaction
from domain.autoscaling.judging import MetricSample, MetricValue, value_of_replicas
from domain.autoscaling.rule import AutoscalingRule, MetricSource
from domain.model import DeploymentLifecycleStatus, Lifecycle
from runtime.metrics import MetricsPage, read_pages
from tasks.redis.wake import Waker

_READY = DeploymentLifecycleStatus(Lifecycle.READY)


def look_at_metrics(engine: Engine, waker: Waker) -> bool:
    """Read what the rules read and wake check_replica when one fires; False, for the next look is the next tick's.

    check_replica decides anew from what is stored here; it is not run for a deployment whose rules are quiet.
    """
    watched = in_transaction(engine, watched_deployments)
    if not watched.deployments:
        return False
    pages = {one.id: _pages(one) for one in watched.deployments}
    samples = read_pages([page for own in pages.values() for page in own.values()])
    measured = {one.id: _measured(one, pages[one.id], samples, watched.now) for one in watched.deployments}
    fires = [one.id for one in watched.deployments if one.fires(measured[one.id], watched.now)]
    if in_transaction(engine, lambda connection: store_and_mark(connection, measured, fires)):
        waker.deployments([_READY])
    return False


_Pages = dict[tuple[str, str], MetricsPage]


def _scraped(one: WatchedDeployment) -> list[AutoscalingRule]:
    return [rule for rule in one.ruled.rules if rule.source is MetricSource.REPLICAS]


def _pages(one: WatchedDeployment) -> _Pages:
    """One for each replica and path, whatever the number of rules that read it."""
    metrics: dict[str, set[str]] = defaultdict(set)
    for rule in _scraped(one):
        metrics[rule.path].add(rule.metric)
    return {
        (address, path): MetricsPage(address, path, frozenset(names))
        for address in one.addresses
        for path, names in metrics.items()
    }


def _measured(
    one: WatchedDeployment,
    pages: _Pages,
    samples: Mapping[MetricsPage, tuple[MetricSample, ...]],
    now: datetime,
) -> list[MetricValue]:
    """A value for each series that at least one replica knows; it is dated before the replicas were asked."""
    values = {
        rule.series: value_of_replicas(
            rule, [samples.get(pages[address, rule.path], ()) for address in one.addresses], now
        )
        for rule in _scraped(one)
    }
    return [value for value in values.values() if value is not None]
