"""Holds a slot in Redis while the work goes on: renewed by one thread for all that a worker holds."""

import threading
from time import sleep

from redis.exceptions import LockError, RedisError
from redis.lock import Lock

from tasks.seen.observed import LOCKS_LOST


class Slot:
    """A slot that this worker holds and renews while the work goes on.

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
                held = [slot for slot in self._held if slot.is_held]
                self._is_running = bool(held)
            if not held:
                return
            for slot in held:
                slot.renew()


def _release(lock: Lock) -> None:
    try:
        lock.release()
    except (LockError, RedisError):
        # It ran out, or Redis is away: the lock ends by itself, and the work it saved is safe without it.
        return
