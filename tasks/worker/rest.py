"""A worker that cannot reach Postgres rests: it leaves the queues of the fleet to others, until it can again."""

from dataclasses import dataclass

import psycopg
import structlog
from celery.worker.consumer import Consumer

from db.silence import is_unreachable
from tasks.redis.locks import Slots
from tasks.wire.queues import SHARED_QUEUES

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Rest:
    """Whether this worker rests. It could only hold the slots that others wait for; its host's queue is its own."""

    consumer: Consumer
    slots: Slots
    _is_resting: bool = False

    def heed(self, error: psycopg.Error | None) -> None:
        """Rest, or take up work again, by what the last try to reach Postgres raised; None when it went through.

        To be called from any thread: the worker's own loop changes what it reads.
        """
        is_reached = error is None or not is_unreachable(error)
        if is_reached != self._is_resting:
            return
        self._is_resting = not is_reached
        _log.warning("Postgres is reached again" if is_reached else "rests until it reaches Postgres")
        if not is_reached:
            self.slots.let_go()
        self.consumer.call_soon(self._follow)

    def _follow(self) -> None:
        """Read what is to be read now. Calls that piled up while Redis was away come in no order, and all do the same.

        First it is chosen, which needs no Redis: where that breaks off, the next connection reads what is chosen.
        """
        queues = self.consumer.app.amqp.queues
        if self._is_resting:
            choose, change = queues.deselect, self.consumer.cancel_task_queue
        else:
            choose, change = (lambda name: queues.select_add(queues[name])), self.consumer.add_task_queue
        for follow in (choose, change):
            for name in SHARED_QUEUES:
                follow(name)
