"""The heartbeat of this host, once a second from a thread of its own; with each the clocks are compared."""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import NamedTuple

import psycopg
import structlog
from psycopg import Connection
from sqlalchemy import Engine

from db.clock_reset import see_it_counted, see_it_counted_on
from db.connection.transactions import database_now, in_transaction, transaction
from db.devices import owned_on
from db.replicas.heartbeats import HostFacts, show_sign_of_life
from db.replicas.secret_requests import is_asked
from db.unreachable import answered_within
from domain.devices.needs import Capacity
from domain.devices.others import memory_of_others
from domain.replicas.host_choice import (
    SIGN_OF_LIFE_SECONDS,
    clock_offset,
    is_warned_of,
    seconds_set_back,
    seconds_set_forward,
)
from domain.revisions.host_labels import Labels
from domain.text.errors import InvalidInputError
from tasks.hosts.background import keep_looking
from tasks.hosts.secret_checks import AGAIN_AFTER

_DEAF_AFTER_SECONDS = 5.0
"""A worker is deaf without an answer for this time, which is longer than the restart of a server."""


@dataclass(slots=True)
class Hearing:
    """Tracks whether Redis answers this worker: each thread that asks Redis regularly notes its answers here."""

    _last: float = field(default_factory=monotonic)

    def note(self) -> None:
        """Redis has answered."""
        self._last = monotonic()

    def is_deaf(self) -> bool:
        """Whether Redis has not answered for some seconds."""
        return monotonic() - self._last > _DEAF_AFTER_SECONDS


_PATIENCE_SECONDS = 3.0
"""The patience is shorter than for other work: a worker that is cut off should notice before it takes much work."""
_SET_FORWARD_SECONDS = 5.0
"""Less is a clock that is adjusted, and shorter than what anything waits for that goes back."""
_WITH_SLEEP = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The database's clock, read between two moments of this worker's steady one, which nobody sets.

    `began`, `ended`: without the time for which this machine slept; `awake_at`, at its end: with that.
    """

    showed: datetime
    began: float
    ended: float
    awake_at: float
    offset: float
    is_asked: bool


class _Ahead(NamedTuple):
    """A clock that was set forward, by `seconds`; `before`: the time that it would show without that."""

    seconds: float
    before: datetime


@dataclass(slots=True)
class Heartbeat:
    """The heartbeats of a worker. `webhooks`: the targets that it knows, by name.

    `secrets_for_all`: the sources of secrets that every deployment gets. `labels`: those of this host. `resources`: its
    devices and amounts for replicas. `memory_in_use`: the gigabytes in use on its devices, if their driver reports it.
    `when_secrets_are_wanted`: called when somebody asks about secrets of this host. `is_deaf`: whether Redis, by which
    this worker is asked to work, does not answer it.
    """

    engine: Engine
    host: str
    address: str
    replica_user: str | None = None
    after_try: Callable[[psycopg.Error | None], object] = bool
    """Called after each try, with its error or None."""
    webhooks: Callable[[], Collection[str]] = tuple
    secrets_for_all: Sequence[str] = ()
    labels: Labels = field(default_factory=dict)
    resources: Capacity = field(default_factory=dict)
    memory_in_use: Callable[[], Capacity] = dict
    when_secrets_are_wanted: Callable[[], object] = bool
    is_deaf: Callable[[], bool] = bool
    _last: _Reading | None = None
    _uncounted_since: datetime | None = None
    _set_forward_by: _Ahead | None = None
    _is_warned: bool = False

    def show(self) -> None:
        """Show one, and compare the clocks. Raises what Postgres raises when it is in trouble."""
        late = threading.Timer(
            _PATIENCE_SECONDS, self.after_try, [psycopg.errors.ConnectionTimeout("it takes too long")]
        )
        late.daemon = True
        late.start()  # a look whether an old connection lives, and a new one, take their time before anything is asked
        try:
            with transaction(self.engine) as connection:
                reading = self._show(connection)
        except psycopg.Error as error:
            self.after_try(error)
            raise
        finally:
            late.cancel()
        self.after_try(None)
        if reading.is_asked:
            self.when_secrets_are_wanted()
        self._warn(reading.offset)
        back = self._set_back(reading)
        if is_warned_of(back):
            _log.error(
                "the clock of Postgres was set back; what it waits for counts from now on", seconds=round(back, 1)
            )
        if self._last is None or is_warned_of(back):
            self._uncounted_since = reading.showed
        self._set_forward(reading)
        self._last = reading
        if self._uncounted_since and in_transaction(
            self.engine, partial(see_it_counted, seen_at=self._uncounted_since)
        ):
            self._uncounted_since = None
        if self._set_forward_by and in_transaction(
            self.engine, partial(see_it_counted_on, **self._set_forward_by._asdict())
        ):
            self._set_forward_by = None

    def _set_forward(self, reading: _Reading) -> None:
        """Note by how much the clock was set forward, to be counted on once: a later look may find it set again."""
        if self._last is None:
            return
        passed = reading.awake_at - self._last.awake_at + (self._last.ended - self._last.began)
        seconds = seconds_set_forward(self._last.showed.timestamp(), passed, reading.showed.timestamp())
        if seconds < _SET_FORWARD_SECONDS:
            return
        _log.error("the clock of Postgres was set forward; what waits counts on", seconds=round(seconds, 1))
        self._set_forward_by = _Ahead(seconds, reading.showed - timedelta(seconds=seconds))

    def _show(self, connection: Connection) -> _Reading:
        began, before = time.monotonic(), time.time()
        with answered_within(connection, _PATIENCE_SECONDS):
            now = database_now(connection)
        offset = clock_offset(before, time.time(), now.timestamp())
        ended, awake_at = time.monotonic(), time.clock_gettime(_WITH_SLEEP)
        show_sign_of_life(connection, self.host, self.address, offset, self.replica_user, self._facts(connection))
        return _Reading(now, began, ended, awake_at, offset, is_asked(connection, self.host, AGAIN_AFTER))

    def _facts(self, connection: Connection) -> HostFacts:
        in_use = self.memory_in_use()
        others = memory_of_others(in_use, owned_on(connection, self.host)) if in_use else {}
        webhooks = None
        with suppress(InvalidInputError):  # the worker that sends to one says so
            webhooks = sorted(self.webhooks())
        return HostFacts(self.labels, self.resources, others, self.secrets_for_all, webhooks, self.is_deaf())

    def _set_back(self, reading: _Reading) -> float:
        if self._last is None:
            return 0.0
        return seconds_set_back(
            self._last.showed.timestamp(), reading.began - self._last.ended, reading.showed.timestamp()
        )

    def _warn(self, offset: float) -> None:
        """Once when it begins, once when it is over."""
        is_off = is_warned_of(offset)
        if is_off and not self._is_warned:
            _log.warning(
                "the clock of this host differs from that of Postgres", host=self.host, seconds_ahead=round(offset, 1)
            )
        elif self._is_warned and not is_off:
            _log.info("the clock of this host is right again", host=self.host)
        self._is_warned = is_off


def keep_showing_signs_of_life(giver: Heartbeat, until: threading.Event) -> threading.Thread:
    """Show them from a thread of its own, also while Redis is away or all threads of this worker are busy."""
    trouble = "no sign of life shown"
    return keep_looking(giver.show, SIGN_OF_LIFE_SECONDS, until, name="signs of life", trouble=trouble, host=giver.host)
