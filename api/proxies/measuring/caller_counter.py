"""The counter of callers: asks the Envoys that this server tells what callers got, and has it written down, always."""

import asyncio
from functools import partial

import structlog
from sqlalchemy import Engine

from api.proxies.measuring.admin_pages import ProxyPages, asking
from api.proxies.proxy_liveness import Presence
from api.proxies.publisher import POSTGRES_ERRORS
from db.connection.transactions import in_transaction
from db.proxies.measurements import LiveProxy
from db.proxies.proxy_reports import add_requests
from domain.traffic.request_counts import NO_LOOK, CallersCounted, CallersLook, came_since, most_asked, weighed
from traffic.envoy.stats import callers_page, counted

EVERY_SECONDS = 5.0
_log = structlog.get_logger(__name__)


class CallersCounter:
    """Each server counts the proxies whose streams it has, so that none is counted twice.

    It remembers their last counters; of a proxy that comes from another server the first look counts nothing, and while
    Postgres is away nothing is lost: the next look counts from the last one that was written.
    """

    def __init__(self, engine: Engine, presence: Presence) -> None:
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
                await asyncio.sleep(EVERY_SECONDS)

    async def _count(self, pages: ProxyPages) -> None:
        asked = [
            LiveProxy(proxy.node_id, proxy.stats_address, has_told=True)
            for proxy in self._presence.live
            if proxy.stats_address and not proxy.is_doubled
        ]
        named = most_asked(self._weights)
        told = await pages.ask_all(asked, callers_page(named), _callers)
        look = CallersLook(told, named)
        came = came_since(self._last, look)
        weights = weighed(self._weights, came)
        await asyncio.to_thread(
            in_transaction, self._engine, partial(add_requests, came=came, named=most_asked(weights))
        )
        self._last, self._weights = look, weights


def _callers(page: bytes) -> CallersCounted:
    return counted(page).callers()
