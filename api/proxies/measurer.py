"""The measurer: asks each live proxy what it counts while a rollout or a drain is under way."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from uuid import UUID

import httpx
import structlog
from psycopg import Connection
from sqlalchemy import Engine

from api.proxies.observed import Observed
from api.proxies.publisher import POSTGRES_ERRORS, Publisher
from db.engine import in_transaction
from db.proxies.drains import note_drain_looks, routes_to_look_at
from db.proxies.measured import DueRollout, LiveProxy, due_rollouts, live_proxies, record_look
from domain.traffic.answers import Counters
from traffic.counted import COUNTERS_PAGE, Counted, clusters_page, counted, under_way

EVERY_SECONDS = 0.9
"""Between two intervals of a rollout, at least."""
_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 2.0
_OK = 200
_log = structlog.get_logger(__name__)
Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class _Work:
    """What is to be measured, and who is asked."""

    rollouts: Sequence[DueRollout]
    draining: Collection[UUID]
    proxies: Sequence[LiveProxy]


@dataclass(frozen=True, slots=True)
class _Silent:
    """Why a proxy did not tell."""

    why: str


class Measurer:
    """Several servers may measure at once: who writes an interval first has counted it, and the others leave it.

    A proxy that does not tell is counted as one that does not, and named in the log once. `on_release` is called in a
    thread when no answer of a draining replica is under way any more.
    """

    def __init__(
        self, engine: Engine, publisher: Publisher, observed: Observed, on_release: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._publisher = publisher
        self._on_release = on_release
        self._observed = observed
        self._silent: Mapping[str, str] = {}

    async def run(self) -> None:
        """Measure until cancelled. While Postgres is away the proxies count on, and the next look sees it all."""
        async with httpx.AsyncClient(
            headers={"User-Agent": "rollway-measurer"},
            trust_env=False,
            verify=False,  # noqa: S501  # plain HTTP only; loading the certificates takes 0.1 s
            timeout=_PATIENCE_SECONDS,
        ) as client:
            while True:
                try:
                    await self._measure(client)
                except POSTGRES_ERRORS as error:
                    _log.warning("answers not written; counted with the next ones", error=str(error).partition("\n")[0])
                await asyncio.sleep(_LOOK_SECONDS)

    async def _measure(self, client: httpx.AsyncClient) -> None:
        work = await asyncio.to_thread(in_transaction, self._engine, _due)
        await asyncio.gather(self._look_at_drains(client, work), self._count(client, work))

    async def _look_at_drains(self, client: httpx.AsyncClient, work: _Work) -> None:
        """Only when all tell is it known what is under way."""
        drains = self._published(work.draining)
        if not drains or not work.proxies:
            return
        page = clusters_page({name for name, *_ in drains.values()})
        found = await self._ask_all(client, work.proxies, page, under_way)
        if len(found) < len(work.proxies):
            return
        busy = {route: sum(its.get(where, 0) for its in found.values()) for route, where in drains.items()}
        if await asyncio.to_thread(in_transaction, self._engine, partial(note_drain_looks, under_way=busy)):
            await asyncio.to_thread(self._on_release)

    def _published(self, draining: Collection[UUID]) -> dict[UUID, tuple[str, str, int]]:
        """Where proxies have these replicas: cluster, IP address and port."""
        services = self._publisher.current.table.services if draining and self._publisher.current else ()
        return {
            upstream.route_id: (service.name, upstream.ip, upstream.port)
            for service in services
            for upstream in service.draining
            if upstream.route_id in draining
        }

    async def _count(self, client: httpx.AsyncClient, work: _Work) -> None:
        if not work.rollouts:
            return
        told = await self._ask_all(client, work.proxies, COUNTERS_PAGE, counted)
        self._observed.proxies_reporting.set(len(told))
        for rollout in work.rollouts:
            counters = {node: _counters_of(rollout, page) for node, page in told.items()}
            write = partial(record_look, rollout=rollout, told=counters, live=len(work.proxies))
            await asyncio.to_thread(in_transaction, self._engine, write)

    async def _ask_all(
        self, client: httpx.AsyncClient, proxies: Sequence[LiveProxy], page: str, read: Callable[[bytes], Told]
    ) -> dict[str, Told]:
        """What is on this page of each proxy that tells, by node id."""
        answers = await asyncio.gather(*(_ask(client, proxy, page, read) for proxy in proxies))
        found = {proxy.node_id: answer for proxy, answer in zip(proxies, answers, strict=True)}
        self._name_silent({node: answer.why for node, answer in found.items() if isinstance(answer, _Silent)})
        return {node: answer for node, answer in found.items() if not isinstance(answer, _Silent)}

    def _name_silent(self, silent: Mapping[str, str]) -> None:
        for node in silent.keys() - self._silent.keys():
            _log.warning("a proxy does not tell what it has counted", node=node, why=silent[node])
        self._silent = silent


def _due(connection: Connection) -> _Work:
    rollouts, draining = due_rollouts(connection, EVERY_SECONDS), routes_to_look_at(connection)
    return _Work(rollouts, frozenset(draining), live_proxies(connection) if rollouts or draining else [])


def _counters_of(rollout: DueRollout, page: Counted) -> Counters:
    """Of both revisions; and of its fresh baseline, under its own id."""
    old = rollout.from_revision_id
    found = page.counters(rollout.deployment, (old, rollout.to_revision_id))
    if not rollout.has_baseline:
        return found
    return replace(found, of={**found.of, rollout.id: page.of_baseline(rollout.deployment, old)})


async def _ask(client: httpx.AsyncClient, proxy: LiveProxy, page: str, read: Callable[[bytes], Told]) -> Told | _Silent:
    if proxy.stats_address is None:
        return _Silent("its bootstrap names no port for that; make a new one with 'rollway envoy-bootstrap'")
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            answer = await client.get(f"http://{proxy.stats_address}{page}")
        if answer.status_code != _OK:
            return _Silent(f"it answers {answer.status_code} at {proxy.stats_address}")
        return read(answer.content)
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return _Silent(f"{proxy.stats_address}: {type(error).__name__} {error}")
