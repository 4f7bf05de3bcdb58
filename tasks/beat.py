"""Beat's scheduler: the schedule is in the code, so that nothing is kept in a file or written every few minutes."""

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule
from redis.exceptions import RedisError

from domain.errors import WrongInstallationError
from domain.installation import check_redis
from tasks.connections import redis_client, waker
from tasks.owners import owner_of_home, owner_of_redis, refuse_to_begin
from tasks.settings import settings

_BEGAN = datetime.now(UTC) - timedelta(seconds=time.monotonic())


def _steady_now() -> datetime:
    """A time that setting the machine's clock does not change: set back by an hour, no tick would come for an hour."""
    return _BEGAN + timedelta(seconds=time.monotonic())


class MemoryScheduler(Scheduler):
    """Needs half the processor time of Celery's own, which wakes up 10 ms before an entry is due and then spins."""

    def setup_schedule(self) -> None:
        """Take the app's schedule without Celery's own entries: results expire in Redis by themselves."""
        _refuse_foreign_redis()
        entries = self.app.conf.beat_schedule
        self.merge_inplace({name: {**entry, "schedule": _steady(entry["schedule"])} for name, entry in entries.items()})

    def adjust(self, n: float | None, drift: float = 0.001) -> float | None:
        """The seconds to sleep: until a millisecond after the next entry is due."""
        return n + drift if n and n > 0 else n

    def apply_entry(self, entry: ScheduleEntry, producer: object = None) -> None:
        """Send the tick, unless so many wait in its queue that nobody seems to read it."""
        with suppress(RedisError):  # sending tells that Redis is away
            if not waker().has_room(entry.options["queue"]):
                return
        super().apply_entry(entry, producer=producer)


def _refuse_foreign_redis() -> None:
    """Beat has no database: what it can compare is its home, where there is one, with Redis."""
    try:
        with suppress(RedisError):
            check_redis(owner_of_home(settings().home), owner_of_redis(redis_client()))
    except WrongInstallationError as error:
        refuse_to_begin(error.message)


def _steady(seconds: float) -> schedule:
    return schedule(timedelta(seconds=seconds), nowfun=_steady_now)
