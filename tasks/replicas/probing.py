"""Probing: whether the replicas of a host run and answer, and what their routes become by that."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic
from uuid import UUID

import redis
from redis.exceptions import RedisError
from sqlalchemy import Engine

from db.connection.transactions import database_now, in_transaction
from db.proxies.acks import release_drained
from db.replicas.heartbeats import back_at
from db.replicas.host_routes import RouteRow, running_routes
from db.replicas.reports import RouteReport
from domain.model.states import RouteStatus
from domain.replicas.health import (
    ProbedRoute,
    ProbeResult,
    end_in_words,
    judge_health,
    pause_while_starting,
    probe_is_due,
    unread_status,
    why_not_yet,
)
from domain.replicas.host_choice import is_lost
from domain.revisions.health_check import HealthCheck
from domain.text.storable import storable
from runtime.probing.http1 import ProbeAnswer
from runtime.probing.probes import Prober, ProbeTarget
from runtime.protocol import Replica, Runtime
from tasks.redis.wake import Waker
from tasks.replicas.liveness import Liveness, Silences
from tasks.replicas.reporting import write_reports
from tasks.replicas.strangers import Strangers, held_in_words, is_to_be_verified, verified
from tasks.replicas.warming import (
    Warmer,
    is_sent_requests,
    report_of_beginning,
    report_of_sleep,
    verdict_in_sleep,
    verdict_while_warming,
)
from tasks.task_settings import KEY_PREFIX

_REPORT_IN_TIME = HealthCheck()


def probed_route(route: RouteRow) -> ProbedRoute:
    """The state of a route before a probe. Raises ValueError for one that was not started."""
    if route.started_at is None:
        raise ValueError(f"route {route.id} is probed before it was started")
    return ProbedRoute(route.status, route.wake_started_at or route.started_at, route.probe_streak)


def check_of(route: RouteRow) -> HealthCheck | None:
    """An external replica without a check is as it was reported; it is waited for as long as one with a check."""
    waits_for_report = route.spec.external is not None and route.status is RouteStatus.PROVISIONING
    return route.spec.health_check or (_REPORT_IN_TIME if waits_for_report else None)


def report_of_unread(route: RouteRow) -> RouteReport | None:
    """The report on a route whose revision this release cannot read."""
    status = route.status if route.unreadable is None else unread_status(route.status)
    if status is route.status:
        return None
    return RouteReport(route.id, route.deployment_id, route.status, status, reason=route.unreadable)


def runs(replica: Replica | None) -> bool:
    """Whether it is there, and has not ended."""
    return replica is not None and replica.running


def end_of(replica: Replica | None) -> ProbeResult:
    if replica is None:
        return ProbeResult(running=False, is_answered=None, detail="its process is gone")
    why = f"; {replica.cause}" if replica.cause else ""
    return ProbeResult(running=False, is_answered=None, detail=end_in_words(replica.exit_code) + why)


MOST_PAUSE = timedelta(seconds=0.1)
"""The longest pause between two looks: a pass may see that late that another replica starts."""
_STARTING_AT_ONCE = 50
_A_STARTING = MOST_PAUSE / _STARTING_AT_ONCE
"""Replicas that start must not starve those that serve, so a look that asked many of them is followed later."""
_NEVER = datetime.min.replace(tzinfo=UTC)


class Timetable:
    """Plans the probes of the routes that a pass read last. `routes` has them by id."""

    def __init__(self) -> None:
        self.routes: dict[UUID, RouteRow] = {}
        self._starting: Sequence[RouteRow] = ()
        self._running: Sequence[tuple[RouteRow, float, float]] = ()
        self._asked: dict[UUID, datetime] = {}
        self.pause = MOST_PAUSE
        """The pause after the look for which `due` was called last."""

    @property
    def starting(self) -> set[UUID]:
        """The routes that were never healthy yet."""
        return {route.id for route in self._starting}

    @property
    def per_second(self) -> float:
        """Probes a second of those that run."""
        return sum(1 / interval for _, _, interval in self._running)

    def cover(self, routes: Sequence[RouteRow]) -> None:
        """Plan for these routes, and no others."""
        self.routes = {}
        self._running = [
            (route, route.started_at.timestamp(), route.spec.health_check.interval_seconds)
            for route in routes
            if route.spec.health_check and route.started_at and route.status is not RouteStatus.PROVISIONING
        ]
        self.renew_starting(routes)

    def renew_starting(self, routes: Sequence[RouteRow]) -> None:
        """Plan the starting routes among these again; the others stay as they were."""
        self.routes.update((route.id, route) for route in routes)
        starting = (route for route in routes if route.status is RouteStatus.PROVISIONING)
        self._starting = [route for route in starting if not route.parked.is_asleep]

    def due(self, since: datetime, now: datetime) -> list[ProbeTarget]:
        """Replicas that run and have a multiple of their interval between the two times; then some that start.

        Each counts from its own start, so that a thousand are not probed in the same instant.
        """
        a, b = since.timestamp(), now.timestamp()
        passed = [route for route, start, every in self._running if (b - start) // every > (a - start) // every]
        return [target for route in [*passed, *self._some_starting(now)] if (target := _target(route, now))]

    def _some_starting(self, now: datetime) -> list[RouteRow]:
        """Replicas for which this look is nearer to the time of their next probe than the next look will be.

        Who was not asked for longest comes first.
        """
        pauses = {
            route.id: pause_while_starting(probed_route(route), now) for route in self._starting if _target(route, now)
        }
        shortest = min([MOST_PAUSE, *pauses.values()])
        self._asked = {route_id: self._asked.get(route_id, _NEVER) for route_id in pauses}
        due = [route_id for route_id, pause in pauses.items() if self._asked[route_id] + pause <= now + shortest / 2]
        first = sorted(due, key=self._asked.__getitem__)[:_STARTING_AT_ONCE]
        self._asked.update(dict.fromkeys(first, now))
        self.pause = max(shortest, len(first) * _A_STARTING)
        return [self.routes[route_id] for route_id in first]


def _target(route: RouteRow, now: datetime) -> ProbeTarget | None:
    """None for what has no check, or no address yet, or whose initial delay is not over."""
    check = route.spec.health_check
    if check is None or route.address is None or route.started_at is None:
        return None
    return (
        ProbeTarget(route.id, route.address, check, route.tls) if probe_is_due(check, route.started_at, now) else None
    )


LOG_TAIL_LINES = 20
_LAST_LOOK = f"{KEY_PREFIX}probe:last"
_TICK = timedelta(seconds=1)
_READ_SECONDS = 1.0
_PATIENCE_SECONDS = 0.05
_STAYS_ABOVE = 25
"""Probes a second. Below this rate one look at each tick sends them all, and the thread is free in between."""


@dataclass(eq=False, slots=True)
class ProbePass:
    """Looks at the running routes of one host, again and again while it is worth it. For one thread.

    What runs is read once a second, what is starting ten times at most, however often it is asked. A probe that is in
    flight when the pass ends stays so in `prober`, which the next pass continues with: so a replica may hang for longer
    than any pass lasts. So may a runtime, by `silences`. `drain_deadline`: how long proxies may take to let go of a
    parked replica that is to sleep.
    """

    engine: Engine
    runtimes: Mapping[str, Runtime]
    waker: Waker
    client: redis.Redis
    host: str
    prober: Prober
    silences: Silences
    drain_deadline: timedelta
    strangers: Strangers = field(default_factory=Strangers)
    warmer: Warmer | None = None
    _timetable: Timetable = field(default_factory=Timetable)
    _next_read: float = 0.0
    _next_full_read: float = 0.0
    _looked_at: datetime | None = None
    _back_at: datetime | None = None
    _first_look_at: datetime | None = None
    _last_details: dict[UUID, str] = field(default_factory=dict)
    _last_reports: dict[UUID, str] = field(default_factory=dict)
    _liveness: Liveness = field(init=False)

    def __post_init__(self) -> None:
        self._liveness = Liveness(self.runtimes, self.silences)

    def look(self) -> float | None:
        """Send the probes that are due, judge what was answered since the last look, write what changed.

        Returns the seconds to the next look while it is worth it: something starts, is unanswered, or is due every
        moment.
        """
        now, since = self._times()
        self.prober.submit(self._timetable.due(since, now))
        answers = self.prober.answers(_PATIENCE_SECONDS)
        replicas = self._liveness.ask(self._timetable.routes.values())
        self._verify(answers, replicas)
        self._note(answers)
        route_ids = replicas.keys() | answers.keys() | self._timetable.starting
        routes = [route for route_id in route_ids if (route := self._timetable.routes.get(route_id))]
        reports = [report for route in routes if (report := self._report(route, replicas, answers, now))]
        self._write(reports)
        goes_on = (
            self._timetable.starting - {report.route_id for report in reports if report.status is not report.was}
            or self._timetable.per_second > _STAYS_ABOVE
            or self.prober.is_busy
            or self._liveness.is_behind
        )
        return self._timetable.pause.total_seconds() if goes_on else None

    def _times(self) -> tuple[datetime, datetime]:
        """The database's time, and since when probes may be due: between two reads only those of starting replicas."""
        until_read = timedelta(seconds=self._next_read - monotonic())
        if self._looked_at and self._timetable.starting and until_read > timedelta(0):
            now = self._looked_at + MOST_PAUSE - until_read
            return now, now
        now = self._read_routes()
        return now, self._since(now)

    def _read_routes(self) -> datetime:
        everything = monotonic() >= self._next_full_read
        rows, self._back_at, now = in_transaction(
            self.engine,
            lambda connection: (
                running_routes(connection, self.host, only_starting=not everything),
                back_at(connection, self.host),
                database_now(connection),
            ),
        )
        self._next_read = monotonic() + MOST_PAUSE.total_seconds()
        if everything:
            self._next_full_read = monotonic() + _READ_SECONDS
            self._timetable.cover([row for row in rows if row.unreadable is None])
        else:
            self._timetable.renew_starting([row for row in rows if row.unreadable is None])
        self._write([report for row in rows if (report := report_of_unread(row))])
        if any(row.spec.park and row.parked.may_fall_asleep and row.let_go_at is None for row in rows):
            in_transaction(self.engine, release_drained)
        if self.warmer is not None and (routes_with_requests := [row for row in rows if is_sent_requests(row)]):
            self.warmer.warm(routes_with_requests)
        return now

    def _since(self, now: datetime) -> datetime:
        """Return when the last look was, by whichever worker process; one tick ago when nobody remembers."""
        before = None
        with suppress(RedisError):
            before = self.client.getset(f"{_LAST_LOOK}:{self.host}", now.isoformat())
        last = datetime.fromisoformat(before.decode()) if isinstance(before, bytes) else self._looked_at
        if last is not None and self._back_at is not None and last < self._back_at:
            self._first_look_at = now
        self._looked_at = now
        return min(last or now - _TICK, now)

    def _verify(self, answers: dict[UUID, ProbeAnswer], replicas: dict[UUID, Replica | None]) -> None:
        """Take first answers for what they are, once it is seen who listens: a replica is healthy by its own alone."""
        routes = [(self._timetable.routes.get(route_id), answer) for route_id, answer in answers.items()]
        for route, answer in routes:
            if route is None or not is_to_be_verified(route, answer):
                continue
            try:
                replicas[route.id] = self.runtimes[route.spec.runtime].find(route.id)
            except OSError:  # nobody knows whose the answer is
                del answers[route.id]
            else:
                answers[route.id] = verified(route, answer, replicas[route.id])

    def _note(self, answers: Mapping[UUID, ProbeAnswer]) -> None:
        """Remember what was seen, as the reason for a start deadline that passes; ask soon for replicas that failed."""
        for route_id, answer in answers.items():
            self._last_details[route_id] = answer.detail
            if not answer.ok:
                self._liveness.ask_next(route_id)

    def _report(
        self,
        route: RouteRow,
        replicas: Mapping[UUID, Replica | None],
        answers: Mapping[UUID, ProbeAnswer],
        now: datetime,
    ) -> RouteReport | None:
        """The change of status or streak that this look found; None when there is none."""
        answer, stranger = answers.get(route.id), held_in_words(route, replicas.get(route.id))
        check = check_of(route)
        if stranger:
            result = ProbeResult(running=False, is_answered=None, detail=stranger)
        elif route.id in replicas and not runs(replicas[route.id]):
            result = end_of(replicas[route.id])
        elif not self._can_be_judged(route, answer, was_asked=route.id in replicas):
            return None
        else:
            detail = answer.detail if answer else self._last_details.get(route.id, "no probe was answered yet")
            result = ProbeResult(running=True, is_answered=answer.ok if answer else None, detail=detail)
        if result.running and (sleep := report_of_sleep(route, self.drain_deadline, now)) is not None:
            return sleep
        verdict = (
            verdict_in_sleep(route, result, now)
            or verdict_while_warming(route, result, now)
            or judge_health(check, probed_route(route), result, now)
        )
        if (beginning := report_of_beginning(route, verdict.status)) is not None:
            return beginning
        if (verdict.status, verdict.streak) == (route.status, route.probe_streak):
            return self._waits(route, answer, now)
        tail = self._log_tail(route) if verdict.status is RouteStatus.FAILED else None
        lost = "" if result.running or stranger else self._ended_with(route, now)
        reason = f"{verdict.reason} while {lost}" if lost else verdict.reason
        return RouteReport(
            *(route.id, route.deployment_id, route.status, verdict.status, verdict.streak, reason),
            log_tail=tail,
            is_late=bool(answer and answer.is_late),
            is_lost=bool(lost) or (bool(stranger) and self.strangers.forgives(route.deployment_id)),
        )

    def _ended_with(self, route: RouteRow, now: datetime) -> str:
        """The cause that ended a replica from outside; empty where it ended by itself."""
        started_at, runtime = route.started_at or now, route.spec.runtime
        if is_lost(started_at, self._back_at, now, self._first_look_at):
            return f"its host {self.host} was away"
        if is_lost(started_at, self.silences.ended_at(runtime, now), now):
            return f"the runtime {runtime!r} was away"
        return ""

    def _waits(self, route: RouteRow, answer: ProbeAnswer | None, now: datetime) -> RouteReport | None:
        """Report why a replica starts for long, once for each answer that it gives."""
        why = answer and why_not_yet(probed_route(route), answer.ok, answer.detail, now)
        if not why or route.warm_up_started_at or route.asleep_at or self._last_reports.get(route.id) == why:
            return None
        self._last_reports[route.id] = why
        return RouteReport(route.id, route.deployment_id, route.status, route.status, route.probe_streak, reason=why)

    def _can_be_judged(self, route: RouteRow, answer: ProbeAnswer | None, *, was_asked: bool) -> bool:
        """Whether this look says enough of a replica that has not ended.

        Without a check its runtime must have been asked, and it must have an address. With one, a start deadline
        must not fail it while its runtime gives no answer.
        """
        if check_of(route) is None:
            return was_asked and route.address is not None and route.spec.external is None
        good = answer is not None and answer.ok
        return good or route.status is not RouteStatus.PROVISIONING or not self._liveness.is_unknown(route)

    def _log_tail(self, route: RouteRow) -> str | None:
        with suppress(OSError):
            return storable(self.runtimes[route.spec.runtime].log_tail(route.id, LOG_TAIL_LINES))
        return None

    def _write(self, reports: Sequence[RouteReport]) -> None:
        if reports:
            write_reports(self.engine, self.waker, reports)
            self._next_read = self._next_full_read = 0.0
