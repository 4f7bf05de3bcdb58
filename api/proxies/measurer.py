"""The measurer: asks each live proxy for its counters while a rollout or a drain is under way."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from uuid import UUID

import httpx
import structlog
from psycopg import Connection
from sqlalchemy import Engine

from api.proxies.publisher import POSTGRES_ERRORS, Publisher
from api.proxies.server_metrics import Observed
from db.connection.transactions import in_transaction
from db.proxies.measurements import DueRollout, LiveProxy, due_rollouts, live_proxies, note_told, record_look
from db.proxies.proxy_reports import keep_answering, late_routes, note_drain_looks, routes_to_look_at
from domain.model.answer_counts import Counters
from domain.traffic.canary_shares import has_fresh_baseline
from traffic.envoy.envoy_names import baseline_cluster, canary_cluster, side_of
from traffic.envoy.stats import (
    ALONE_PAGE,
    COUNTERS_PAGE,
    Counted,
    Places,
    by_cluster,
    clusters_page,
    connections,
    connections_page,
    is_alone,
    known_connections,
    read_answered,
    read_counters,
    under_way,
)

_PATIENCE_SECONDS = 2.0
_OK = 200
_log = structlog.get_logger(__name__)
Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class _Silent:
    """The reason why a proxy did not tell."""

    why: str


class ProxyPages:
    """Asks with one client, and remembers who was silent at the last page."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._silent: Mapping[str, str] = {}

    async def ask_all(self, proxies: Sequence[LiveProxy], page: str, parse: Callable[[bytes], Told]) -> dict[str, Told]:
        """The page of each proxy that answers, parsed by `parse` in a thread, by node id."""
        answers = await asyncio.gather(*(self._ask(proxy, page, parse) for proxy in proxies))
        by_node = {proxy.node_id: answer for proxy, answer in zip(proxies, answers, strict=True)}
        self._name_silent({node: answer.why for node, answer in by_node.items() if isinstance(answer, _Silent)})
        return {node: answer for node, answer in by_node.items() if not isinstance(answer, _Silent)}

    async def _ask(self, proxy: LiveProxy, page: str, parse: Callable[[bytes], Told]) -> Told | _Silent:
        if proxy.stats_address is None:
            return _Silent("its bootstrap names no port for that; make a new one with 'rollway envoy-bootstrap'")
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                answer = await self._client.get(f"http://{proxy.stats_address}{page}")
            if answer.status_code != _OK:
                return _Silent(f"it answers {answer.status_code} at {proxy.stats_address}")
            return await asyncio.to_thread(parse, answer.content)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return _Silent(f"{proxy.stats_address}: {type(error).__name__} {error}")

    def _name_silent(self, silent: Mapping[str, str]) -> None:
        for node in silent.keys() - self._silent.keys():
            _log.warning("a proxy does not tell what it has counted", node=node, why=silent[node])
        self._silent = silent


@asynccontextmanager
async def asking() -> AsyncIterator[ProxyPages]:
    """Yield pages with an HTTP client of their own."""
    async with httpx.AsyncClient(
        headers={"User-Agent": "rollway-measurer"},
        trust_env=False,
        verify=False,  # noqa: S501  # plain HTTP only; loading the certificates takes 0.1 s
        timeout=_PATIENCE_SECONDS,
    ) as client:
        yield ProxyPages(client)


EVERY_SECONDS = 0.9
"""The least length of a rollout's interval."""
_LOOK_SECONDS = 0.5
_LATE_SECONDS = 3.0
"""The time between two looks at replicas that answer no probe."""
_LOOKS_AT_REST = 4
"""Only one of 4 looks is made while nothing changes and nothing is measured."""
Answered = TypeVar("Answered")


@dataclass(frozen=True, slots=True)
class _Work:
    """The things to measure, and who is asked."""

    rollouts: Sequence[DueRollout]
    draining: Collection[UUID]
    late: Collection[UUID]
    proxies: Sequence[LiveProxy]


class Measurer:
    """Several servers may measure at once: the first to write an interval has counted it, and the others skip it.

    A proxy that does not answer is counted as silent. `on_release` is called in a thread when no answer of a draining
    replica is under way any more.
    """

    def __init__(
        self, engine: Engine, publisher: Publisher, observed: Observed, on_release: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._publisher = publisher
        self._on_release = on_release
        self._observed = observed
        self._answered: Mapping[str, Places] = {}
        self._next_late_look = 0.0

    async def run(self) -> None:
        """Measure until cancelled. While Postgres is away the proxies count on, and the next look sees it all."""
        async with asking() as proxies:
            while True:
                is_at_work = True
                try:
                    is_at_work = await self._measure(proxies)
                except POSTGRES_ERRORS as error:
                    _log.warning("answers not written; counted with the next ones", error=str(error).partition("\n")[0])
                await asyncio.sleep(_LOOK_SECONDS)
                for _ in range(1, _LOOKS_AT_REST):
                    if is_at_work or not self._publisher.rests:
                        break
                    await asyncio.sleep(_LOOK_SECONDS)

    async def _measure(self, proxies: ProxyPages) -> bool:
        """Measure what there is; whether there is anything."""
        looks_at_late = time.monotonic() >= self._next_late_look
        work = await asyncio.to_thread(in_transaction, self._engine, partial(_due, looks_at_late=looks_at_late))
        await asyncio.gather(self._look_at_drains(proxies, work), self._count(proxies, work))
        if looks_at_late:
            await self._look_at_late(proxies, work)
        return bool(work.rollouts or work.draining)

    async def _look_at_late(self, proxies: ProxyPages, work: _Work) -> None:
        """Note which of them have answered since the last look, as one proxy told: what the first look found is old."""
        self._next_late_look = time.monotonic() + _LATE_SECONDS
        late = self._places(work.late)
        if not late or not work.proxies:
            self._answered = {}
            return
        places = await self._ask(proxies, work, clusters_page({name for name, *_ in late.values()}), read_answered)
        before = [(its, self._answered[node]) for node, its in places.items() if node in self._answered]
        grown = [
            route
            for route, at in late.items()
            if any(its.get(at, 0) > was.get(at, its.get(at, 0)) for its, was in before)
        ]
        keep = partial(keep_answering, route_ids=grown)
        if not grown or await asyncio.to_thread(in_transaction, self._engine, keep):
            self._answered = places

    async def _look_at_drains(self, proxies: ProxyPages, work: _Work) -> None:
        """Only when all tell is it known what is under way."""
        drains = self._places(work.draining)
        if not drains or not work.proxies:
            return
        page = clusters_page({name for name, *_ in drains.values()})
        in_flight = await self._ask(proxies, work, page, under_way)
        if len(in_flight) < len(work.proxies):
            return
        busy = {route: sum(its.get(where, 0) for its in in_flight.values()) for route, where in drains.items()}
        if 0 in busy.values() and not await self._is_all(proxies, work):
            busy = {route: answers for route, answers in busy.items() if answers}
        idle = {drains[route][0] for route, answers in busy.items() if not answers}
        forgotten = await self._forgotten(proxies, work, idle & self._publisher.forgetful)
        busy = {route: answers or forgotten.get(drains[route][0], 0) for route, answers in busy.items()}
        if await asyncio.to_thread(in_transaction, self._engine, partial(note_drain_looks, under_way=busy)):
            await asyncio.to_thread(self._on_release)

    async def _forgotten(self, proxies: ProxyPages, work: _Work, names: Collection[str]) -> Mapping[str, int]:
        """Count the connections to replicas of these deployments in clusters that proxies have dropped.

        Each carries what is under way at one of its replicas, and is closed when that has ended. Connections come and
        go between two pages, so the clusters that there are tell before and after the sum of all.
        """
        if not names:
            return {}
        pages = (
            (clusters_page(names), known_connections),
            (connections_page(names), connections),
            (clusters_page(names), known_connections),
        )
        before, of_all, after = [await self._ask(proxies, work, page, parse) for page, parse in pages]
        nodes = before.keys() & of_all.keys() & after.keys()
        if len(nodes) < len(work.proxies):
            return dict.fromkeys(names, 1)
        return {
            name: sum(
                max(0, of_all[node].get(name, 0) - max(before[node].get(name, 0), after[node].get(name, 0)))
                for node in nodes
            )
            for name in names
        }

    async def _is_all(self, proxies: ProxyPages, work: _Work) -> bool:
        """Whether no proxy hands over: asked after what is under way, so that none began to before it told that."""
        alone = await self._ask(proxies, work, ALONE_PAGE, is_alone)
        return len(alone) == len(work.proxies) and all(alone.values())

    def _places(self, routes: Collection[UUID]) -> dict[UUID, tuple[str, str, int]]:
        """Find where proxies have these replicas: cluster, IP address and port."""
        services = self._publisher.current.table.services if routes and self._publisher.current else ()
        return {
            upstream.route_id: (service.name, upstream.ip, upstream.port)
            for service in services
            for upstream in (*service.serving, *service.draining)
            if upstream.route_id in routes
        }

    async def _count(self, proxies: ProxyPages, work: _Work) -> None:
        if not work.rollouts:
            return
        counts = await self._ask(proxies, work, COUNTERS_PAGE, read_counters)
        self._observed.proxies_reporting.set(len(counts))
        weighed = {rollout.deployment for rollout in work.rollouts if rollout.has_weight}
        busy = await self._ask(proxies, work, clusters_page(weighed), by_cluster) if weighed else {}
        for rollout in work.rollouts:
            nodes = counts.keys() & busy.keys() if rollout.has_weight else counts.keys()
            counters = {node: _counters_of(rollout, counts[node], busy.get(node, {})) for node in nodes}
            write = partial(record_look, rollout=rollout, counters=counters, live=len(work.proxies))
            await asyncio.to_thread(in_transaction, self._engine, write)

    async def _ask(
        self, proxies: ProxyPages, work: _Work, page: str, parse: Callable[[bytes], Answered]
    ) -> dict[str, Answered]:
        """Read this page of each proxy that answers, by node id; the first answer of a proxy is recorded."""
        pages = await proxies.ask_all(work.proxies, page, parse)
        if new := {proxy.node_id for proxy in work.proxies if not proxy.has_told} & pages.keys():
            await asyncio.to_thread(in_transaction, self._engine, partial(note_told, node_ids=new))
        return pages


def _due(connection: Connection, *, looks_at_late: bool) -> _Work:
    rollouts, draining = due_rollouts(connection, EVERY_SECONDS), frozenset(routes_to_look_at(connection))
    late = frozenset(late_routes(connection)) if looks_at_late else frozenset[UUID]()
    proxies = live_proxies(connection) if rollouts or draining or late else []
    return _Work(rollouts, draining, late, proxies)


def _counters_of(rollout: DueRollout, page: Counted, busy: Mapping[str, int]) -> Counters:
    """The counters of both revisions, and of a fresh baseline, under its own id."""
    name, old, new = rollout.deployment, rollout.from_revision_id, rollout.to_revision_id
    by_side = Counter[str]()
    for cluster, answers in busy.items():
        by_side[side_of(cluster)] += answers
    fresh = by_side[baseline_cluster(name)]
    under_way = {new: by_side[canary_cluster(name)], old: by_side[name] + fresh, rollout.id: fresh}
    counters = replace(page.counters(name, (old, new)), under_way=under_way)
    if not has_fresh_baseline(rollout.policy["spec"]):
        return counters
    return replace(counters, of={**counters.of, rollout.id: page.of_baseline(name, old)})
