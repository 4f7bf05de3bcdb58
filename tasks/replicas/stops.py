"""Takes the replicas that leave one host step by step: what cannot be stopped now holds up nobody else."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from uuid import UUID

import structlog
from psycopg import Connection
from sqlalchemy import Engine

from db.connection.engine import in_transaction
from db.proxies.acks import release_drained
from db.proxies.drains import Told, told_of_drains
from db.replicas.kills import Cut, Kill, record_cuts, record_kills
from db.replicas.routes import RouteRow, record_stopped, request_stop, routes_to_stop
from domain.replicas.drain import DrainTimes, LeavingRoute, StopStep, cut_by_maximum, next_stop_step
from domain.replicas.health import pause_after
from runtime.protocol import Runtime
from tasks.cycle.change import change_and_wake
from tasks.redis.wake import Waker
from tasks.replicas.reporting import log_gone, log_killed
from tasks.replicas.starts import Turns, request_of
from tasks.seen.observed import DRAINS_CUT

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Taken:
    """A step, why it was not done, if its runtime gave no answer, and how many answers it cut, as far as is known."""

    step: StopStep
    why_not: str | None = None
    cut: int = 0

    @property
    def is_kill(self) -> bool:
        """The replica was killed just now."""
        return self.step is StopStep.KILL and self.why_not is None


@dataclass(frozen=True, slots=True)
class _Trouble:
    """The tries in a row with no answer for a route from a runtime, and when to ask again, in monotonic seconds."""

    tries: int
    again_at: float


@dataclass(eq=False, slots=True)
class Stops:
    """Stops what shall no longer run on `host`. `drain_deadline`: how long proxies may take to acknowledge a drain."""

    engine: Engine
    runtimes: Mapping[str, Runtime]
    waker: Waker
    host: str
    drain_deadline: timedelta
    _turns: Turns[_Taken] = field(default_factory=Turns)
    _troubles: dict[UUID, _Trouble] = field(default_factory=dict)

    def look(self) -> bool:
        """Take each leaving replica one step further. True while one is still leaving whose runtime answers."""
        routes, told = in_transaction(self.engine, self._read)
        known = {route.id: route for route in routes}
        self._troubles = {route_id: trouble for route_id, trouble in self._troubles.items() if route_id in known}
        due = self._due(routes)
        taken = self._turns.ask(due, partial(self._take_step, told=told))
        for route_id, end in taken.items():
            self._note_trouble(route_id, end.why_not)
        asked = [route_id for route_id, end in taken.items() if end.step is StopStep.ASK]
        first_asked = [route_id for route_id in asked if route_id in known and not known[route_id].stop_requested_at]
        if first_asked:
            in_transaction(self.engine, partial(request_stop, route_ids=first_asked))
        self._tell_cuts([(known[route_id], taken[route_id].cut) for route_id in first_asked])
        self._tell_kills([known[route_id] for route_id, end in taken.items() if end.is_kill and route_id in known])
        gone = [route_id for route_id, end in taken.items() if end.step is StopStep.GONE]
        if gone:
            change_and_wake(self.engine, self.waker, partial(record_stopped, route_ids=gone))
            log_gone((known[route_id] for route_id in gone if route_id in known), self.host)
        return len(gone) < len(due) or self._turns.is_behind

    def _read(self, connection: Connection) -> tuple[list[RouteRow], Told]:
        release_drained(connection)
        routes = routes_to_stop(connection, self.host)
        return routes, told_of_drains(connection, [route.id for route in routes])

    def _tell_cuts(self, asked: Sequence[tuple[RouteRow, int]]) -> None:
        cuts = [Cut(route.deployment_id, route.spec.drain_max_seconds, answers) for route, answers in asked if answers]
        if cuts:
            in_transaction(self.engine, partial(record_cuts, host=self.host, cuts=cuts))

    def _tell_kills(self, killed: Sequence[RouteRow]) -> None:
        """Tell of kills: whose requests were cut off must be able to find out why."""
        kills = [Kill(route.id, route.deployment_id, route.spec.stop_grace_seconds) for route in killed]
        if kills:
            in_transaction(self.engine, partial(record_kills, host=self.host, kills=kills))

    def _due(self, routes: Sequence[RouteRow]) -> list[RouteRow]:
        now = time.monotonic()
        return [route for route in routes if route.id not in self._troubles or self._troubles[route.id].again_at <= now]

    def _take_step(self, route: RouteRow, told: Told) -> _Taken:
        """Take the next step, as far as its runtime answers."""
        step, cut = self._next_step(route, None, told), 0
        try:
            runtime, request = self._runtime(route), request_of(route)
            replica = runtime.find(route.id)
            step = self._next_step(route, replica is not None and replica.running, told)
            if step is StopStep.ASK:
                cut = cut_by_maximum(self._leaving(route, True, told), self._times(route))  # noqa: FBT003
                runtime.terminate(route.id, request)
            elif step is StopStep.KILL:
                runtime.kill(route.id, request)
                DRAINS_CUT.inc()
                log_killed(route, self.host)
        except Exception as error:  # noqa: BLE001  (whatever it is, it must not reach those that leave beside it)
            return _Taken(step, str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}")
        return _Taken(step, cut=cut)

    def _runtime(self, route: RouteRow) -> Runtime:
        runtime = self.runtimes.get(route.spec.runtime)
        if runtime is None:
            raise OSError(f"this release of Rollway has no runtime {route.spec.runtime!r}")
        return runtime

    def _next_step(self, route: RouteRow, running: bool | None, told: Told) -> StopStep:  # noqa: FBT001
        return next_stop_step(self._leaving(route, running, told), self._times(route), told.now)

    def _leaving(self, route: RouteRow, running: bool | None, told: Told) -> LeavingRoute:  # noqa: FBT001
        trouble = self._troubles.get(route.id)
        return LeavingRoute(
            status=route.status,
            was_started=route.started_at is not None,
            running=running,
            is_unheard=trouble is not None and route.stop_requested_at is not None,
            drain_started_at=route.drain_started_at,
            out_of_traffic_at=route.out_of_traffic_at,
            stop_requested_at=route.stop_requested_at,
            has_address=route.address is not None,
            do_proxies_tell=told.do_proxies_tell,
            have_proxies_told=told.have_proxies_told,
            look=told.looks.get(route.id),
        )

    def _times(self, route: RouteRow) -> DrainTimes:
        spec = route.spec
        return DrainTimes(
            deadline=self.drain_deadline,
            drain=timedelta(seconds=spec.drain_seconds),
            stop_grace=timedelta(seconds=spec.stop_grace_seconds),
            drain_max=timedelta(seconds=spec.drain_max_seconds) if spec.drain == "until_idle" else None,
        )

    def _note_trouble(self, route_id: UUID, why: str | None) -> None:
        """A trouble is said when it begins and when it ends, and not at each try."""
        before = self._troubles.pop(route_id, None)
        if why is None:
            if before is not None:
                _log.warning("a leaving replica is reached again", route=str(route_id), tries=before.tries + 1)
            return
        if before is None:
            _log.warning("replica not stopped; tried again and again", route=str(route_id), why=why)
        tries = before.tries + 1 if before else 1
        self._troubles[route_id] = _Trouble(tries, time.monotonic() + pause_after(tries).total_seconds())
