"""Redis locks that save work: a handler's lock is one of n slots. Postgres, not the lock, keeps the truth."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import redis
from redis.exceptions import LockError, RedisError
from redis.lock import Lock

from tasks.settings import KEY_PREFIX


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot that is held, by a token that only its owner knows; without a lock id there is nothing to hold."""

    lock: Lock | None

    def renew(self) -> bool:
        """Give the lock its full life again. False when it was lost: stop claiming, someone else is at it."""
        if self.lock is None:
            return True
        try:
            return bool(self.lock.reacquire())
        except RedisError:
            return False


@dataclass(frozen=True, slots=True)
class Slots:
    """`count` slots for each lock id, each held for `seconds` unless renewed.

    `again` gets the keys of the events that found every slot taken: what they were sent for may have come after the
    holder's last look, so they are sent once more when it lets go.
    """

    client: redis.Redis
    count: int
    seconds: float
    again: Callable[[Iterable[str]], None]

    @contextmanager
    def hold(self, lock_id: str | None, key: str) -> Iterator[Slot | None]:
        """A free slot for the event `key`, or None at once when all are taken. Released by its owner only."""
        if lock_id is None:
            yield Slot(None)
            return
        lock = self._first_free(lock_id) or self._first_free_after_leaving_word(lock_id, key)
        if lock is None:
            yield None
            return
        try:
            yield Slot(lock)
        finally:
            _release(lock)
            self.again(self._left_word(lock_id))

    def _first_free(self, lock_id: str) -> Lock | None:
        for number in range(self.count):
            lock: Lock = self.client.lock(
                f"{KEY_PREFIX}lock:{lock_id}:{number}", timeout=self.seconds, blocking=False, thread_local=False
            )
            if lock.acquire():
                return lock
        return None

    def _first_free_after_leaving_word(self, lock_id: str, key: str) -> Lock | None:
        """Word first, second try then: a holder that lets go in between is either seen here, or sees the word."""
        pipeline = self.client.pipeline()
        pipeline.sadd(_word(lock_id), key)
        pipeline.expire(_word(lock_id), int(self.seconds) + 1)
        pipeline.execute()
        lock = self._first_free(lock_id)
        if lock is not None:
            self.client.srem(_word(lock_id), key)
        return lock

    def _left_word(self, lock_id: str) -> list[str]:
        pipeline = self.client.pipeline()
        pipeline.smembers(_word(lock_id))
        pipeline.delete(_word(lock_id))
        try:
            members, _ = pipeline.execute()
        except RedisError:
            return []
        return [member.decode() for member in members]


def _word(lock_id: str) -> str:
    return f"{KEY_PREFIX}again:{lock_id}"


def _release(lock: Lock) -> None:
    try:
        lock.release()
    except (LockError, RedisError):
        # It ran out, or Redis is away: the lock ends by itself, and the work it saved is safe without it.
        return
