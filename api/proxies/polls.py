"""Envoy's polls: each notes what the proxy holds, and is answered when there is something else for it."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import structlog

from api.proxies.observed import Observed
from api.proxies.publisher import Publisher
from api.proxies.recorder import Recorder
from db.proxies.acks import SeenProxy
from traffic.resources import CLUSTERS, Resource, Subscription

HOLD_SECONDS = 20.0
SILENCE_SECONDS = 10.0
"""An Envoy that has not polled for so long counts no more; while it is there it asks again within 40 ms."""
_REFUSED_WITHIN = 1.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a proxy was last told of a subscription, and when. `refusals`: how often it came back without it.

    After a refusal the same is not said again before `not_before` (monotonic seconds, as is `at`).
    """

    version: str
    at: float
    refusals: int = 0
    not_before: float = 0.0


class Polls:
    """Holds polls open, and remembers what it answered to each proxy."""

    def __init__(self, publisher: Publisher, recorder: Recorder, observed: Observed) -> None:
        self._publisher = publisher
        self._recorder = recorder
        self._observed = observed
        self._answers: dict[str, dict[Subscription, _Answer]] = {}

    async def poll(
        self, node: str, subscription: Subscription, version: str, gone: asyncio.Future[Any]
    ) -> Resource | None:
        """What to tell the proxy; None when nothing changed for 20 s, or it hung up, or the server stops.

        `node`: the proxy's id; `version`: what it holds, "" for nothing; `gone`: a future that is done once it hung up.
        """
        deadline = time.monotonic() + HOLD_SECONDS
        with self._recorder.open_poll(node), self._observed.polls_held.track_inprogress():
            await self._recorder.hear(SeenProxy(node, "envoy", SILENCE_SECONDS))
            told = self._note_refusal(node, subscription, version)
            if self._is_unknown(subscription, version, told):
                newer = asyncio.ensure_future(self._publisher.read_after_now())
                await _until_any(deadline, gone, newer)
                newer.cancel()
            self._recorder.acknowledge(node, subscription, version)
            found = await self._different(subscription, version, gone, deadline, told)
        if found is not None:
            refusals = told.refusals if told and told.version == found.version else 0
            self._of(node)[subscription] = _Answer(found.version, time.monotonic(), refusals)
        return found

    async def _different(
        self, subscription: Subscription, version: str, gone: asyncio.Future[Any], deadline: float, told: _Answer | None
    ) -> Resource | None:
        """The content, as soon as it is not the proxy's and not what it refused a moment ago."""
        while not (gone.done() or self._publisher.stopping) and time.monotonic() < deadline:
            with self._publisher.change_of(subscription) as change:
                found = self._publisher.resource(subscription)
                until = deadline
                if found is not None and found.version != version:
                    refused = told is not None and told.version == found.version
                    if not refused or told is None or told.not_before <= time.monotonic():
                        return found
                    until = min(deadline, told.not_before)
                await _until_any(until, gone, change)
        return None

    def _is_unknown(self, subscription: Subscription, version: str, told: _Answer | None) -> bool:
        """Whether it holds what this server did not tell it.

        Another server may have told it, from a newer table; only a table as new as that one can show what it holds.
        """
        present = self._publisher.resource(subscription)
        if not version or (present is not None and present.version == version):
            return False
        return told is None or told.version != version

    def _note_refusal(self, node: str, subscription: Subscription, version: str) -> _Answer | None:
        """What it was told before; noted as refused when it came back at once and still holds something else."""
        if subscription == CLUSTERS:
            self._forget_gone()
        answers = self._of(node)
        told, now = answers.get(subscription), time.monotonic()
        if told is None:
            return None
        if told.version == version:
            told = _Answer(version, told.at)
        elif now - told.at < _REFUSED_WITHIN:
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**told.refusals)
            told = _Answer(told.version, told.at, told.refusals + 1, now + pause)
            self._observed.refused.labels(node).inc()
            _log.warning(
                "the proxy did not take this over; its log says why",
                node=node,
                kind=subscription.kind.value,
                name=subscription.name,
                version=told.version,
                next_try_seconds=pause,
            )
        answers[subscription] = told
        return told

    def _of(self, node: str) -> dict[Subscription, _Answer]:
        return self._answers.setdefault(node, {})

    def _forget_gone(self) -> None:
        for node in self._answers.keys() - self._recorder.nodes:
            del self._answers[node]
        for answers in self._answers.values():
            for gone in [key for key in answers if self._publisher.resource(key) is None]:
                del answers[gone]


async def _until_any(deadline: float, *futures: asyncio.Future[Any]) -> None:
    left = max(0.0, deadline - time.monotonic())
    await asyncio.wait(futures, timeout=left, return_when=asyncio.FIRST_COMPLETED)
