"""Asks live proxies what a page of theirs shows; who does not tell is named in the log, once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import httpx
import structlog

from db.proxies.measurements import LiveProxy

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

    async def ask_all(self, proxies: Sequence[LiveProxy], page: str, read: Callable[[bytes], Told]) -> dict[str, Told]:
        """Return what `read`, in a thread, makes of this page of each proxy that tells, by node id."""
        answers = await asyncio.gather(*(self._ask(proxy, page, read) for proxy in proxies))
        found = {proxy.node_id: answer for proxy, answer in zip(proxies, answers, strict=True)}
        self._name_silent({node: answer.why for node, answer in found.items() if isinstance(answer, _Silent)})
        return {node: answer for node, answer in found.items() if not isinstance(answer, _Silent)}

    async def _ask(self, proxy: LiveProxy, page: str, read: Callable[[bytes], Told]) -> Told | _Silent:
        if proxy.stats_address is None:
            return _Silent("its bootstrap names no port for that; make a new one with 'rollway envoy-bootstrap'")
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                answer = await self._client.get(f"http://{proxy.stats_address}{page}")
            if answer.status_code != _OK:
                return _Silent(f"it answers {answer.status_code} at {proxy.stats_address}")
            return await asyncio.to_thread(read, answer.content)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return _Silent(f"{proxy.stats_address}: {type(error).__name__} {error}")

    def _name_silent(self, silent: Mapping[str, str]) -> None:
        for node in silent.keys() - self._silent.keys():
            _log.warning("a proxy does not tell what it has counted", node=node, why=silent[node])
        self._silent = silent


@asynccontextmanager
async def asking() -> AsyncIterator[ProxyPages]:
    """With a client of its own, as long as it is used."""
    async with httpx.AsyncClient(
        headers={"User-Agent": "rollway-measurer"},
        trust_env=False,
        verify=False,  # noqa: S501  # plain HTTP only; loading the certificates takes 0.1 s
        timeout=_PATIENCE_SECONDS,
    ) as client:
        yield ProxyPages(client)
