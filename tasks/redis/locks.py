"""Redis locks that save work: a worker that runs a handler holds one of its slots. Only Postgres keeps it right."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep

import redis
from redis.exceptions import LockError, RedisError
from redis.lock import Lock

from domain.text.errors import InvalidInputError
from tasks.task_settings import KEY_PREFIX, MOST_SLOTS
from tasks.telemetry.task_metrics import LOCKS_CONTENDED, LOCKS_LOST

_KEY = f"{KEY_PREFIX}slots"


_FRESH_SECONDS = 1.0


class SlotCount:
    """Reads the number from Redis, once a second at most; `default` where there is none."""

    def __init__(self, client: redis.Redis, default: int) -> None:
        self._client = client
        self._default = default
        self._known = default
        self._read_at = -_FRESH_SECONDS

    def __call__(self) -> int:
        """The number now. Raises RedisError when it must be read and Redis is away."""
        if monotonic() - self._read_at >= _FRESH_SECONDS:
            self._known = slots_asked_for(self._client) or self._default
            self._read_at = monotonic()
        return self._known


def slots_asked_for(client: redis.Redis) -> int | None:
    """The number that all workers keep to; None where each goes by its own ROLLWAY_SLOTS."""
    raw = client.get(_KEY)
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else ""
    return int(text) if text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_SLOTS else None


def ask_for_slots(client: redis.Redis, count: int | None) -> None:
    """Make all workers keep to this number within a second; None: each goes by its own ROLLWAY_SLOTS again.

    A worker that holds a slot beyond the number continues until its work is done. Raises InvalidInputError.
    """
    if count is None:
        client.delete(_KEY)
    elif 1 <= count <= MOST_SLOTS:
        client.set(_KEY, count)
    else:
        raise InvalidInputError(f"slots must be a number from 1 to {MOST_SLOTS}, not {count}", field="slots")


class Slot:
    """A slot that this worker holds and renews while the work continues.

    So a slot can be short-lived: when its worker is killed, the others wait for seconds only. Only its owner can
    release it, by a token in Redis.
    """

    def __init__(self, lock: Lock | None) -> None:
        self._lock = lock
        self._talking = threading.Lock()
        """Held while Redis is asked, or a renewal under way would find the lock released, and count it as lost."""
        self._is_over = False
        self._taken_away = threading.Event()

    @property
    def is_held(self) -> bool:
        """False when it ran out, so that another worker may hold it: stop claiming."""
        return not self._taken_away.is_set()

    def let_go(self) -> None:
        """Leave it to other workers now, though the work has not ended."""
        self._taken_away.set()
        self.end()

    def end(self) -> None:
        """The work is over: it is free for others, and renewed no more."""
        with self._talking:
            if self._lock is not None and not self._is_over:
                _release(self._lock)
            self._is_over = True

    def renew(self) -> None:
        """Hold it for its whole life from now on, unless it is over or found lost."""
        with self._talking:
            if self._lock is None or self._is_over:
                return
            try:
                self._lock.reacquire()
            except LockError:
                LOCKS_LOST.inc()
                self._taken_away.set()
                self._is_over = True
            except RedisError:
                return  # Redis is away: once it is back, the next renewal finds out


class Renewals:
    """Renews what a worker holds, in one thread, which ends once nothing is held.

    Most work ends within the first pause, and a thread for each would take a third of what a slot costs.
    """

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self._held: set[Slot] = set()
        self._is_running = False

    @property
    def held(self) -> list[Slot]:
        """The slots that this worker holds."""
        with self._lock:
            return list(self._held)

    def add(self, slot: Slot) -> None:
        """Renew it from now on."""
        with self._lock:
            self._held.add(slot)
            if not self._is_running:
                threading.Thread(target=self._run, name="lock renewal", daemon=True).start()
                self._is_running = True

    def drop(self, slot: Slot) -> None:
        """Renew it no more."""
        with self._lock:
            self._held.discard(slot)

    def _run(self) -> None:
        while True:
            sleep(self._pause)
            with self._lock:
                slots = [slot for slot in self._held if slot.is_held]
                self._is_running = bool(slots)
            if not slots:
                return
            for slot in slots:
                slot.renew()


def _release(lock: Lock) -> None:
    try:
        lock.release()
    except (LockError, RedisError):
        # It ran out, or Redis is away: the lock ends by itself, and the work it saved is safe without it.
        return


RENEWALS_IN_A_LIFE = 3

_NOTE_SECONDS = 60
"""The time after which a note "run this once more" expires: its reader was killed. No holder works longer."""


class Slots:
    """`count` slots for each lock id, of which a worker takes one; that of a worker that is gone ends after `seconds`.

    `count` is what this worker was started with; a number in Redis (`SlotCount`) replaces it.

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
