"""Redis locks that save work: a worker that runs a handler holds one of its slots. Only Postgres keeps it right."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import redis
from redis.exceptions import RedisError
from redis.lock import Lock

from tasks.redis.slot import Renewals, Slot
from tasks.redis.slot_count import SlotCount
from tasks.seen.observed import LOCKS_CONTENDED
from tasks.settings import KEY_PREFIX

RENEWALS_IN_A_LIFE = 3

_NOTE_SECONDS = 60
"""When a note "run this once more" ends by itself: its reader was killed. No holder goes on for so long."""


class Slots:
    """`count` slots for each lock id, of which a worker takes one; that of a worker that is gone ends after `seconds`.

    `count` is what this worker was started with; a number in Redis (`tasks.redis.locks`) replaces it.

    An event that finds no slot leaves a note with its key, because its reason may be newer than what the holder has
    read. A holder that lets go hands the keys of all notes to `send_events`, which sends these events once more.
    """

    def __init__(
        self, client: redis.Redis, count: int, seconds: float, send_events: Callable[[Iterable[str]], None]
    ) -> None:
        self._client = client
        self._count = SlotCount(client, count)
        self._seconds = seconds
        self._send_events = send_events
        self._mine: set[str] = set()
        self._renewals = Renewals(seconds / RENEWALS_IN_A_LIFE)

    @contextmanager
    def hold(self, lock_id: str | None, key: str, *, single: bool = False) -> Iterator[Slot | None]:
        """A free slot for the event `key`, or None at once when there is none.

        `single`: the handler has one slot only, whatever `count` says. Without a lock id every event gets a slot.
        """
        if lock_id is None:
            yield Slot(None)
            return
        count = 1 if single else self._count()
        lock = self._first_free(lock_id, count) or self._leave_note_and_retry(lock_id, key, count)
        if lock is None:
            LOCKS_CONTENDED.labels(lock_id.partition("@")[0]).inc()
            yield None
            return
        slot = Slot(lock)
        try:
            self._renewals.add(slot)
            yield slot
        finally:
            self._renewals.drop(slot)
            slot.end()
            self._mine.discard(lock_id)
            self._send_events(self._take_notes(lock_id))

    def let_go(self) -> None:
        """Leave all slots that this worker holds to others, though it has not ended its work."""
        for slot in self._renewals.held:
            slot.let_go()

    def is_one_free(self, lock_id: str | None) -> bool:
        """Whether another worker could help. False without a lock id: all workers may run such a handler anyway."""
        if lock_id is None:
            return False
        try:
            count = self._count()
            return count > 1 and self._client.exists(*(_name(lock_id, number) for number in range(count))) < count
        except RedisError:
            return False

    def _first_free(self, lock_id: str, count: int) -> Lock | None:
        """A free slot. None also when another thread of this worker holds one: a second would only share its core."""
        if lock_id in self._mine:
            return None
        for number in range(count):
            lock: Lock = self._client.lock(
                _name(lock_id, number), timeout=self._seconds, blocking=False, thread_local=False
            )
            if lock.acquire():
                self._mine.add(lock_id)
                return lock
        return None

    def _leave_note_and_retry(self, lock_id: str, key: str, count: int) -> Lock | None:
        """Note first, then the second try: a holder that lets go in between reads the note or leaves its slot to us."""
        pipeline = self._client.pipeline()
        pipeline.sadd(_notes(lock_id), key)
        pipeline.expire(_notes(lock_id), _NOTE_SECONDS)
        pipeline.execute()
        lock = self._first_free(lock_id, count)
        if lock is not None:
            self._client.srem(_notes(lock_id), key)
        return lock

    def _take_notes(self, lock_id: str) -> list[str]:
        pipeline = self._client.pipeline()
        pipeline.smembers(_notes(lock_id))
        pipeline.delete(_notes(lock_id))
        try:
            members, _ = pipeline.execute()
        except RedisError:
            return []
        return [member.decode() for member in members]


def _name(lock_id: str | None, number: int) -> str:
    return f"{KEY_PREFIX}lock:{lock_id}:{number}"


def _notes(lock_id: str) -> str:
    return f"{KEY_PREFIX}again:{lock_id}"
