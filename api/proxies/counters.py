"""Asks Envoys for numbers while nothing is rolled out: what callers got, and the load that autoscaling rules read."""

import asyncio
import time
from collections.abc import Collection, Mapping
from functools import partial
from uuid import UUID

import structlog
from sqlalchemy import Engine

from api.proxies.measurer import ProxyPages, asking
from api.proxies.proxy_liveness import ProxyLiveness
from api.proxies.publisher import POSTGRES_ERRORS, Publisher
from db.connection.transactions import in_transaction
from db.cycle.autoscaling_rules import store_values
from db.proxies.measurements import LiveProxy
from db.proxies.proxy_reports import Demanded, add_requests, demanded
from domain.autoscaling.rule import MetricValue
from domain.autoscaling.scaling_decision import DemandLook, Shown, value_of_demand, with_look
from domain.traffic.request_counts import NO_LOOK, CallersLook, came_since, most_asked, weighed
from traffic.envoy.stats import REQUESTS_PAGE, callers_page, clusters_page, read_counters, under_way

CALLERS_EVERY_SECONDS = 5.0
_log = structlog.get_logger(__name__)


class CallersCounter:
    """Each server counts the proxies whose streams it has, so that none is counted twice.

    It remembers their last counters; of a proxy that comes from another server the first look counts nothing, and while
    Postgres is away nothing is lost: the next look counts from the last one that was written.
    """

    def __init__(self, engine: Engine, presence: ProxyLiveness) -> None:
        self._engine = engine
        self._presence = presence
        self._last = NO_LOOK
        self._weights: dict[str, float] = {}

    async def run(self) -> None:
        """Count until cancelled."""
        async with asking() as pages:
            while True:
                try:
                    await self._count(pages)
                except POSTGRES_ERRORS as error:
                    _log.warning("requests not written; counted later", error=str(error).partition("\n")[0])
                await asyncio.sleep(CALLERS_EVERY_SECONDS)

    async def _count(self, pages: ProxyPages) -> None:
        proxies = [
            LiveProxy(proxy.node_id, proxy.stats_address, has_told=True)
            for proxy in self._presence.live
            if proxy.stats_address and not proxy.is_doubled
        ]
        names = most_asked(self._weights)
        counts = await pages.ask_all(proxies, callers_page(names), lambda page: read_counters(page).callers())
        look = CallersLook(counts, names)
        came = came_since(self._last, look)
        weights = weighed(self._weights, came)
        await asyncio.to_thread(
            in_transaction, self._engine, partial(add_requests, came=came, names=most_asked(weights))
        )
        self._last, self._weights = look, weights


_DEMAND_EVERY_SECONDS = 2.0
_REST_SECONDS = 5.0
"""The interval while no rule reads the demand."""
_Looks = Mapping[UUID, tuple[DemandLook, ...]]


class DemandReader:
    """Remembers the looks of the last seconds, since a rate takes two. The values are written, and workers act on them.

    Several servers may read at once: each finds the same rate, and the newest value counts.
    """

    def __init__(self, engine: Engine, publisher: Publisher) -> None:
        self._engine = engine
        self._publisher = publisher
        self._looks: _Looks = {}

    async def run(self) -> None:
        """Read until cancelled; without a rule that needs it nobody is asked."""
        async with asking() as proxies:
            while True:
                is_read = True
                try:
                    is_read = await self._update(proxies)
                except POSTGRES_ERRORS as error:
                    _log.warning("demand not read or not written", error=str(error).partition("\n")[0])
                await asyncio.sleep(_DEMAND_EVERY_SECONDS if is_read else _REST_SECONDS)

    async def _update(self, proxies: ProxyPages) -> bool:
        """Read and write the values that rules need; returns whether any rule does."""
        demand = await asyncio.to_thread(in_transaction, self._engine, demanded)
        self._looks = await self._looked(proxies, demand) if demand else {}
        if demand:
            values = _values(demand, self._looks)
            await asyncio.to_thread(in_transaction, self._engine, partial(store_values, values=values))
        return bool(demand)

    async def _looked(self, proxies: ProxyPages, demand: Demanded) -> _Looks:
        """The looks of each deployment, including this one."""
        seconds = time.monotonic()
        names = {series.deployment_id: series.deployment for series in demand.series}
        counts, busy = await asyncio.gather(
            proxies.ask_all(demand.proxies, REQUESTS_PAGE, read_counters),
            proxies.ask_all(demand.proxies, clusters_page(names.values()), under_way),
        )
        stays = self._staying(set(names.values()))
        both = {node: (counts[node], busy[node]) for node in counts.keys() & busy.keys()}
        looks = {}
        for deployment_id, name in names.items():
            by_proxy = {
                node: Shown(its.uptime, its.requests(name), sum(at.get(where, 0) for where in stays.get(name, ())))
                for node, (its, at) in both.items()
            }
            look = DemandLook(seconds, demand.expected, by_proxy)
            looks[deployment_id] = with_look(self._looks.get(deployment_id, ()), look)
        return looks

    def _staying(self, names: set[str]) -> dict[str, Collection[tuple[str, str, int]]]:
        """The replicas of these deployments that take requests: deployment, IP address and port."""
        services = self._publisher.current.table.services if self._publisher.current else ()
        return {
            service.name: {(service.name, replica.ip, replica.port) for replica in service.serving}
            for service in services
            if service.name in names
        }


def _values(demand: Demanded, looks: _Looks) -> list[tuple[UUID, MetricValue]]:
    values = ((series, value_of_demand(series, looks[series.deployment_id], demand.now)) for series in demand.series)
    return [(series.deployment_id, value) for series, value in values if value is not None]
