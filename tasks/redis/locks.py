"""Redis locks that save work: a handler's lock is one of n slots. Postgres, not the lock, keeps the truth."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import redis
from redis.exceptions import LockError, RedisError
from redis.lock import Lock

from tasks.redis.slot_count import SlotCount
from tasks.settings import KEY_PREFIX

RENEWALS_IN_A_LIFE = 3

_WORD_SECONDS = 60
"""Longer than any holder goes on; only when it was killed does nobody ask for the word."""


class Slot:
    """A slot that is held, by a token that only its owner knows, and renewed while the work goes on.

    So a lock can be short-lived: when its worker is killed, the others wait for seconds only.
    """

    def __init__(self, lock: Lock | None, seconds: float) -> None:
        self._lock = lock
        self._pause = seconds / RENEWALS_IN_A_LIFE
        self._done = threading.Event()
        self._lost = threading.Event()

    @property
    def is_held(self) -> bool:
        """False when the lock was lost: stop claiming, someone else is at it."""
        return not self._lost.is_set()

    def __enter__(self) -> Self:
        if self._lock is not None:
            threading.Thread(target=self._renew, args=(self._lock,), name="lock renewal", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        if self._lock is not None:
            _release(self._lock)

    def _renew(self, lock: Lock) -> None:
        while not self._done.wait(self._pause):
            try:
                lock.reacquire()
            except LockError:
                self._lost.set()
                return
            except RedisError:
                continue  # Redis is away: the lock is found lost when it is back, or not at all


@dataclass(frozen=True, slots=True)
class Slots:
    """`count` slots for each lock id, of which a worker takes one; that of a worker that is gone ends after `seconds`.

    `count` is what this worker was started with; a number in Redis (`tasks.redis.slot_count`) replaces it.
    `again` gets the keys of the events that found no slot. What they were sent for may have come after the holder's
    last look, so they are sent once more when it lets go.
    """

    client: redis.Redis
    count: int
    seconds: float
    again: Callable[[Iterable[str]], None]
    _counted: SlotCount = field(init=False)
    _mine: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_counted", SlotCount(self.client, self.count))

    @contextmanager
    def hold(self, lock_id: str | None, key: str, *, alone: bool = False) -> Iterator[Slot | None]:
        """A free slot for the event `key`, or None at once when there is none. Released by its owner only.

        `alone`: there is only one, whatever their number. Without a lock id there is no end of slots.
        """
        if lock_id is None:
            yield Slot(None, self.seconds)
            return
        count = 1 if alone else self._counted()
        lock = self._first_free(lock_id, count) or self._first_free_after_leaving_word(lock_id, key, count)
        if lock is None:
            yield None
            return
        try:
            with Slot(lock, self.seconds) as slot:
                yield slot
        finally:
            self._mine.discard(lock_id)
            self.again(self._left_word(lock_id))

    def is_one_free(self, lock_id: str | None) -> bool:
        """Whether it is worth asking others for help. False for a handler without a lock, which all may run anyway."""
        if lock_id is None:
            return False
        try:
            count = self._counted()
            return count > 1 and self.client.exists(*(_name(lock_id, number) for number in range(count))) < count
        except RedisError:
            return False

    def _first_free(self, lock_id: str, count: int) -> Lock | None:
        """None too when another thread of this worker has one: a second would share its core, not bring one."""
        if lock_id in self._mine:
            return None
        for number in range(count):
            lock: Lock = self.client.lock(
                _name(lock_id, number), timeout=self.seconds, blocking=False, thread_local=False
            )
            if lock.acquire():
                self._mine.add(lock_id)
                return lock
        return None

    def _first_free_after_leaving_word(self, lock_id: str, key: str, count: int) -> Lock | None:
        """Word first, second try then: a holder that lets go in between is either seen here, or sees the word."""
        pipeline = self.client.pipeline()
        pipeline.sadd(_word(lock_id), key)
        pipeline.expire(_word(lock_id), _WORD_SECONDS)
        pipeline.execute()
        lock = self._first_free(lock_id, count)
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


def _name(lock_id: str | None, number: int) -> str:
    return f"{KEY_PREFIX}lock:{lock_id}:{number}"


def _word(lock_id: str) -> str:
    return f"{KEY_PREFIX}again:{lock_id}"


def _release(lock: Lock) -> None:
    try:
        lock.release()
    except (LockError, RedisError):
        # It ran out, or Redis is away: the lock ends by itself, and the work it saved is safe without it.
        return
