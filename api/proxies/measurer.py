"""The measurer: asks each live proxy what it has counted while a rollout is under way, and writes it down."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import httpx
import structlog
from sqlalchemy import Engine

from api.proxies.observed import Observed
from api.proxies.publisher import POSTGRES_ERRORS
from db.engine import in_transaction
from db.proxies.measured import DueRollout, LiveProxy, due_rollouts, live_proxies, record_look
from traffic.counted import COUNTERS_PAGE, Counted, counted

EVERY_SECONDS = 1.0
_PATIENCE_SECONDS = 2.0
_OK = 200
_log = structlog.get_logger(__name__)


class Measurer:
    """Several servers may measure at once: who writes an interval first has counted it, and the others leave it.

    A proxy that does not tell is counted as one that does not, and named in the log once.
    """

    def __init__(self, engine: Engine, observed: Observed) -> None:
        self._engine = engine
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
                await asyncio.sleep(EVERY_SECONDS)

    async def _measure(self, client: httpx.AsyncClient) -> None:
        rollouts, proxies = await asyncio.to_thread(in_transaction, self._engine, _due)
        if not rollouts:
            return
        found = await asyncio.gather(*(_ask(client, proxy) for proxy in proxies))
        pages = {proxy.node_id: page for proxy, page in zip(proxies, found, strict=True)}
        self._name_silent({node: page for node, page in pages.items() if isinstance(page, str)})
        told = {node: page for node, page in pages.items() if isinstance(page, Counted)}
        self._observed.proxies_reporting.set(len(told))
        for rollout in rollouts:
            revisions = (rollout.from_revision_id, rollout.to_revision_id)
            counters = {node: page.counters(rollout.deployment, revisions) for node, page in told.items()}
            write = partial(record_look, rollout=rollout, told=counters, live=len(proxies))
            await asyncio.to_thread(in_transaction, self._engine, write)

    def _name_silent(self, silent: Mapping[str, str]) -> None:
        for node in silent.keys() - self._silent.keys():
            _log.warning("a proxy does not tell what it has counted", node=node, why=silent[node])
        self._silent = silent


def _due(connection: Any) -> tuple[list[DueRollout], list[LiveProxy]]:  # noqa: ANN401  (psycopg's, of any row)
    rollouts = due_rollouts(connection, EVERY_SECONDS * 0.9)
    return rollouts, live_proxies(connection) if rollouts else []


async def _ask(client: httpx.AsyncClient, proxy: LiveProxy) -> Counted | str:
    """What it has counted, or why that is not known."""
    if proxy.stats_address is None:
        return "its bootstrap names no port for that; make a new one with 'rollway envoy-bootstrap'"
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            answer = await client.get(f"http://{proxy.stats_address}{COUNTERS_PAGE}")
        if answer.status_code != _OK:
            return f"it answers {answer.status_code} at {proxy.stats_address}"
        return counted(answer.content)
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return f"{proxy.stats_address}: {type(error).__name__} {error}"
