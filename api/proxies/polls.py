"""Envoy's polls: each notes what the proxy holds, and is answered when there is something else for it."""

import asyncio
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import structlog

from api.proxies.observed import Observed
from api.proxies.presence import Doubles
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
    """The last answer to a proxy about a subscription, and when. `refusals`: how often the proxy came back without it.

    After a refusal the same answer is not given again before `not_before` (monotonic seconds, as is `at`).
    """

    version: str
    at: float
    refusals: int = 0
    not_before: float = 0.0


@dataclass(eq=False, slots=True)
class Polls:
    """Holds polls open, and remembers what it answered to each proxy."""

    publisher: Publisher
    recorder: Recorder
    observed: Observed
    _answers: dict[str, dict[Subscription, _Answer]] = field(default_factory=dict)
    _doubles: Doubles = field(default_factory=Doubles)

    async def poll(
        self,
        node: str,
        subscription: Subscription,
        version: str,
        hung_up: asyncio.Future[Any],
        stats_address: str | None = None,
    ) -> Resource | None:
        """The answer; None when nothing changed for 20 s, or it hung up, or the server stops.

        `node`: the proxy's id; `version`: what it holds, "" for nothing; `hung_up`: done once it hung up;
        `stats_address`: host:port where it tells what it has counted.
        """
        deadline = time.monotonic() + HOLD_SECONDS
        main = self._doubles.poll(node) if subscription == CLUSTERS else nullcontext()
        with main, self.recorder.presence.open_poll(node), self.observed.polls_held.track_inprogress():
            are_two = self._doubles.are_two(node)
            await self.recorder.hear(SeenProxy(node, "envoy", SILENCE_SECONDS, are_two, stats_address))
            last = self._note_refusal(node, subscription, version)
            if self._is_unknown(subscription, version, last):
                newer = asyncio.ensure_future(self.publisher.read_after_now())
                await _until_any(deadline, hung_up, newer)
                newer.cancel()
            self.recorder.acknowledge(node, subscription, version)
            found = await self._different(subscription, version, hung_up, deadline, last)
        if found is not None:
            refusals = last.refusals if last and last.version == found.version else 0
            self._answers_to(node)[subscription] = _Answer(found.version, time.monotonic(), refusals)
        return found

    async def _different(
        self,
        subscription: Subscription,
        version: str,
        hung_up: asyncio.Future[Any],
        deadline: float,
        last: _Answer | None,
    ) -> Resource | None:
        """The content, as soon as it is not the proxy's and not what it refused a moment ago."""
        while not (hung_up.done() or self.publisher.stopping) and time.monotonic() < deadline:
            with self.publisher.change_of(subscription) as change:
                found = self.publisher.resource(subscription)
                until = deadline
                if found is not None and found.version != version:
                    not_before = last.not_before if last and last.version == found.version else 0.0
                    if not_before <= time.monotonic():
                        return found
                    until = min(deadline, not_before)
                await _until_any(until, hung_up, change)
        return None

    def _is_unknown(self, subscription: Subscription, version: str, last: _Answer | None) -> bool:
        """Whether it holds what this server did not answer.

        It may be another server's answer, from a newer table; only a table as new as that one can show what it holds.
        """
        present = self.publisher.resource(subscription)
        if not version or (present is not None and present.version == version):
            return False
        return last is None or last.version != version

    def _note_refusal(self, node: str, subscription: Subscription, version: str) -> _Answer | None:
        """The last answer, noted as refused when the proxy came back at once and still holds something else."""
        if subscription == CLUSTERS:
            self._forget_gone()
        answers = self._answers_to(node)
        last, now = answers.get(subscription), time.monotonic()
        if last is None:
            return None
        if last.version == version:
            last = _Answer(version, last.at)
        elif now - last.at < _REFUSED_WITHIN:
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**last.refusals)
            last = _Answer(last.version, last.at, last.refusals + 1, now + pause)
            self.observed.refused.inc()
            _log.warning(
                "the proxy did not take this over; its log says why",
                node=node,
                kind=subscription.kind.value,
                name=subscription.name,
                version=last.version,
                next_try_seconds=pause,
            )
        answers[subscription] = last
        return last

    def _answers_to(self, node: str) -> dict[Subscription, _Answer]:
        return self._answers.setdefault(node, {})

    def _forget_gone(self) -> None:
        for node in self._answers.keys() - self.recorder.presence.nodes:
            del self._answers[node]
        for answers in self._answers.values():
            for key in [key for key in answers if self.publisher.resource(key) is None]:
                del answers[key]


async def _until_any(deadline: float, *futures: asyncio.Future[Any]) -> None:
    left = max(0.0, deadline - time.monotonic())
    await asyncio.wait(futures, timeout=left, return_when=asyncio.FIRST_COMPLETED)
