"""Envoys' streams: each gets the changes that its proxy lacks, and its acknowledgements are recorded."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog

from api.proxies.proxy_liveness import Doubles
from api.proxies.publisher import Published, Publisher
from api.proxies.recorder import Recorder
from api.proxies.server_metrics import Observed
from db.proxies.acks import SeenProxy
from traffic.resources import ResourceKind
from traffic.stream import DiscoveryRequest, Response, Stream

SILENCE_SECONDS = 10.0
"""An Envoy without a stream for 10 s counts no more; one that is alive comes back within a second."""
_log = structlog.get_logger(__name__)
Send = Callable[[Response[Published]], Awaitable[None]]


@dataclass(eq=False, slots=True)
class ProxyStreams:
    """Serves the streams of one server."""

    publisher: Publisher
    recorder: Recorder
    observed: Observed
    _doubles: Doubles = field(default_factory=Doubles)

    async def serve(
        self, node: str, stats_address: str | None, requests: AsyncIterator[DiscoveryRequest], send: Send
    ) -> None:
        """One stream of the proxy `node`, until it hangs up or the server stops.

        `stats_address`: host:port where it tells what it has counted.
        """
        proxy = SeenProxy(node, "envoy", SILENCE_SECONDS, stats_address=stats_address)
        stream, news = Stream[Published](), asyncio.Event()
        with (
            self.recorder.presence.open_stream(node),
            self.recorder.hears_of(node, stream),
            self._doubles.open_stream(node, stats_address) as speaks,
            self.observed.streams.track_inprogress(),
            self.publisher.tells(news),
        ):
            await self._hear_of(proxy)
            first = await anext(requests, None)
            if first is None:
                return
            self._hear(node, stream, first)
            reading = asyncio.ensure_future(self._receive(proxy, stream, requests, news, speaks))
            try:
                if first.holds:
                    await self._catch_up(reading)
                await self._tell(proxy, stream, news, reading, send)
            finally:
                reading.cancel()
                with suppress(asyncio.CancelledError):
                    await reading

    async def _hear_of(self, proxy: SeenProxy) -> None:
        await self.recorder.hear(replace(proxy, is_doubled=self._doubles.are_two(proxy.node_id)))

    async def _receive(
        self,
        proxy: SeenProxy,
        stream: Stream[Published],
        requests: AsyncIterator[DiscoveryRequest],
        news: asyncio.Event,
        speaks: Callable[[], None],
    ) -> None:
        refused: Mapping[str, str] = {}
        try:
            async for request in requests:
                speaks()
                self._hear(proxy.node_id, stream, request)
                news.set()
                if request.kind is ResourceKind.SECRETS:
                    refused = await self._note_refused(stream, refused, request.error)
                await self._hear_of(proxy)
        finally:
            news.set()

    def _hear(self, node: str, stream: Stream[Published], request: DiscoveryRequest) -> None:
        refused = stream.hear(request, time.monotonic())
        if refused:
            self.observed.refused.inc()
            _log.warning(
                "the proxy did not take this over",
                node=node,
                kind=request.kind.value,
                names=", ".join(refused[:3]) + (f" and {len(refused) - 3} more" if len(refused) > 3 else ""),  # noqa: PLR2004 (as many as a line holds)
                error=request.error,
            )

    async def _note_refused(self, stream: Stream[Published], before: Mapping[str, str], why: str) -> Mapping[str, str]:
        """Record which certificates the proxy refuses, and which it shows now."""
        now = stream.refused(ResourceKind.SECRETS)
        newly = [name for name, version in now.items() if before.get(name) != version]
        no_more = before.keys() - now.keys()
        if newly or no_more:
            await self.recorder.note_refused(newly, no_more, why)
        return now

    async def _catch_up(self, reading: asyncio.Future[None]) -> None:
        """Wait for a table as new as what another server may have told it: only that can show what it holds."""
        newer = asyncio.ensure_future(self.publisher.read_after_now())
        try:
            await asyncio.wait((newer, reading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            newer.cancel()

    async def _tell(
        self,
        proxy: SeenProxy,
        stream: Stream[Published],
        news: asyncio.Event,
        reading: asyncio.Future[None],
        send: Send,
    ) -> None:
        noted_number = 0
        while not (self.publisher.stopping or reading.done()):
            news.clear()
            current, now = self.publisher.current, time.monotonic()
            response = stream.next(current, now) if current else None
            if response is not None:
                await send(response)
                continue
            # Postgres refused it; it may be another matter by now
            if proxy.node_id not in self.recorder.presence.nodes:
                await self._hear_of(proxy)
            if current is not None and stream.acknowledged is not None and stream.acknowledged.number > noted_number:
                noted_number = stream.acknowledged.number
                self.recorder.knows(proxy.node_id, stream.acknowledged, is_news=current.is_news, by=stream)
            until = stream.next_try(now)
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), None if until is None else until - now)
