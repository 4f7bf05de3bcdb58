"""Sends events to subscribers from a thread of its own: a hanging one delays no other subscriber and no rollout."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any

import httpx
import structlog
from kombu.exceptions import OperationalError
from psycopg import Connection
from redis.exceptions import RedisError
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.outbox import claim_events, record_delivered, record_failed
from domain.outbox.delivery import MOST_QUEUED, Failure, Pending, body_of, cloud_event, failure, signed_headers
from domain.outbox.targets import Target
from domain.text.errors import InvalidInputError
from runtime.external_runtime import post_within, why_not_reached

AT_ONCE = 8
"""Events that are on their way to one subscription at the same time, each of another deployment."""

_MARGIN = timedelta(seconds=5)
_SUCCESS = range(200, 300)
_GONE = 410
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Courier:
    """The one of a worker. `seconds`: how long a webhook may take; `targets`: those that this host knows, by name.

    `send_task`: its name, payload and queue, and after how many seconds nobody needs it; `queued`: messages in a queue.

    It holds what it sends by a lease that ends a little later: then another worker sends it once more.
    """

    engine: Engine
    targets: Callable[[], Mapping[str, Target]]
    send_task: Callable[[str, Mapping[str, Any], str, float], object]
    queued: Callable[[str], int]
    seconds: float
    stopping: threading.Event
    _thread: threading.Thread = field(default_factory=threading.Thread)

    def look(self) -> None:
        """Begin to send what is due, unless it is at that already."""
        if not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="courier", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        try:
            asyncio.run(self._send_what_is_due())
        except Exception as error:  # noqa: BLE001  (whatever is in trouble, the alarm of the next second begins again)
            _log.warning("events wait: they cannot be read", error=str(error).partition("\n")[0])

    async def _send_what_is_due(self) -> None:
        """Send until nothing is due, or this worker ends."""
        under_way: dict[asyncio.Task[None], str] = {}
        while True:
            for pending, ends_at in self._claim(under_way.values()):
                under_way[asyncio.create_task(self._send(pending, ends_at))] = pending.subscription
            if not under_way:
                return
            finished, _ = await asyncio.wait(under_way, timeout=1, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                del under_way[task]
                if error := task.exception():
                    _log.warning("what became of an event is not written; it is sent again", error=str(error))

    def _claim(self, under_way: Collection[str]) -> list[tuple[Pending, float]]:
        if self.stopping.is_set():
            return []
        busy = Counter(under_way)
        lease, ends_at = timedelta(seconds=self.seconds) + _MARGIN, monotonic() + self.seconds
        claimed = in_transaction(self.engine, lambda connection: claim_events(connection, lease, AT_ONCE, busy))
        return [(pending, ends_at) for pending in claimed]

    async def _send(self, pending: Pending, ends_at: float) -> None:
        failed = await self._try(pending, ends_at)

        def record(connection: Connection) -> None:
            if failed is None:
                record_delivered(connection, pending)
            else:
                record_failed(connection, pending, failed)

        in_transaction(self.engine, record)
        if failed is not None:
            _tell(pending, failed)

    async def _try(self, pending: Pending, ends_at: float) -> Failure | None:
        if pending.webhook is not None:
            return await self._post(pending, pending.webhook, ends_at)
        task, queue = str(pending.task), str(pending.queue)
        remaining = pending.give_up_after - (pending.tried_at - pending.at)
        try:
            if (waiting := await asyncio.to_thread(self.queued, queue)) >= MOST_QUEUED:
                return failure(pending, f"{waiting} messages lie in the queue {queue}, and nobody takes them")
            await asyncio.to_thread(
                self.send_task, task, cloud_event(pending), queue, max(1.0, remaining.total_seconds())
            )
        except (OperationalError, OSError, RedisError) as error:
            return failure(pending, f"the task {task} cannot be sent: {type(error).__name__}")
        return None

    async def _post(self, pending: Pending, webhook: str, ends_at: float) -> Failure | None:
        try:
            target = self.targets().get(webhook)
        except InvalidInputError as error:
            return failure(pending, error.message)
        if target is None:
            return failure(pending, f"ROLLWAY_WEBHOOKS names no target {webhook} here")
        body = body_of(cloud_event(pending))
        signed = signed_headers(body, pending.id, pending.tried_at, target.keys)
        headers = {"content-type": "application/cloudevents+json; charset=utf-8", **signed}
        try:
            answer = await post_within(target.url, body, headers, ends_at - monotonic())
        except TimeoutError:
            return failure(pending, f"{webhook} has not answered within {self.seconds:g} s")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return failure(pending, f"{webhook} cannot be reached: {why_not_reached(error)}")
        if answer.status in _SUCCESS:
            return None
        return failure(pending, f"{webhook} answered {answer.status}", is_wanted=answer.status != _GONE)


def _tell(pending: Pending, failed: Failure) -> None:
    """A failure is a warning; what is given up is an error."""
    targets = {
        "subscription": pending.subscription,
        "type": pending.type,
        "deployment": pending.deployment,
        "id": str(pending.id),
        "tries": pending.tries,
        "why": failed.why,
    }
    if failed.ends:
        _log.error("a subscription has ended: its receiver wants no further events", **targets)
    elif failed.pause is None:
        _log.error("an event is given up; 'rollway subscriptions' counts them", **targets)
    else:
        _log.warning("an event is not delivered yet", seconds=failed.pause.total_seconds(), **targets)
