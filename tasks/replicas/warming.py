"""Sends the requests of a warm-up, `sleep` and `wake` to replicas that get no requests of callers meanwhile.

A worker keeps its counts in memory: if it is killed, another worker begins with the first request. The times at which
a warm-up begins and ends are written, so its clock continues.
"""

import asyncio
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from uuid import UUID

import redis
import structlog
from redis.exceptions import RedisError
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.host_routes import RouteRow, warming_among
from db.replicas.reports import RouteReport, record_reports
from db.unreachable import AWAY
from domain.model.states import RouteStatus
from domain.replicas.drain import DrainTimes
from domain.replicas.health import HealthVerdict, ProbeResult
from domain.replicas.sleep import SleepStep, judge_sleep, next_sleep_step
from domain.replicas.warm_up import (
    WarmingRoute,
    WarmUpAnswer,
    WarmUpProgress,
    is_held_back,
    judge_warm_up,
    words_at_first,
)
from domain.revisions.warm_start_spec import ParkRequest
from runtime.probing.warm_up_requests import warm_up_answer
from tasks.redis.locks import RENEWALS_IN_A_LIFE, Renewals, Slot
from tasks.task_settings import KEY_PREFIX

_log = structlog.get_logger(__name__)
_LOCK_SECONDS = 5.0
_SLEEP_SECONDS = 30.0
"""The time for the answer to `sleep`, since a wake waits for it."""
_EVERY_SECONDS = 1.0
"""The pause after a bad answer, while another worker warms the replica up, or while Postgres is away."""


def is_sent_requests(route: RouteRow) -> bool:
    """Whether the worker should send requests to its replica: to warm it up, or to let it sleep or wake."""
    return is_warmed_up(route) or _park_request(route) is not None


def _park_request(route: RouteRow) -> tuple[ParkRequest, SleepStep] | None:
    """The request to a parked or waking replica, and the step to report when it is answered; None for any other."""
    park, parked = route.spec.park, route.parked
    if park is None or route.status is not RouteStatus.PROVISIONING:
        return None
    if parked.is_waking and parked.wake_started_at:
        return park.wake, SleepStep.OVER
    return (park.sleep, SleepStep.ANSWERED) if parked.is_asleep and parked.slept_at is None else None


def report_of_sleep(route: RouteRow, drain_deadline: timedelta, now: datetime) -> RouteReport | None:
    """The report before the first `sleep` or `wake`; None if neither is due."""
    times, park = DrainTimes.of(route.spec, drain_deadline), route.spec.park
    step = next_sleep_step(park, route.parked, times, now)
    if park is None or step is SleepStep.NONE:
        return None
    words = "asleep until it is needed" if step is SleepStep.BEGINS else f"waking: {park.wake.request}"
    starts = RouteStatus.PROVISIONING
    return RouteReport(route.id, route.deployment_id, route.status, starts, reason=words, sleep=step)


def verdict_in_sleep(route: RouteRow, result: ProbeResult, now: datetime) -> HealthVerdict | None:
    """The verdict on a replica that may sleep; None for any other."""
    if route.spec.park is None or route.asleep_at is None or route.status is not RouteStatus.PROVISIONING:
        return None
    return judge_sleep(route.spec.park, route.parked, result, now, route.reason)


def is_warmed_up(route: RouteRow) -> bool:
    """Whether its warm-up is under way."""
    is_begun = route.spec.warm_up is not None and route.warm_up_started_at is not None
    return is_begun and route.status is RouteStatus.PROVISIONING and route.warmed_at is None


def verdict_while_warming(route: RouteRow, result: ProbeResult, now: datetime) -> HealthVerdict | None:
    """The verdict on a replica in its warm-up, or warm and not yet healthy since; None for any other."""
    warm_up, began = route.spec.warm_up, route.warm_up_started_at
    if warm_up is None or began is None or route.status is not RouteStatus.PROVISIONING or route.wake_started_at:
        return None
    probe = replace(result, is_answered=True) if route.spec.health_check is None else result
    return judge_warm_up(warm_up, WarmingRoute(began, route.warmed_at, route.reason), probe, now)


def report_of_beginning(route: RouteRow, status: RouteStatus) -> RouteReport | None:
    """The report in place of its first good health check, if a warm-up comes first; else None."""
    if route.warm_up_started_at or not is_held_back(route.spec.warm_up, route.status, status, route.warmed_at):
        return None
    words = words_at_first(route.spec.warm_up)
    return RouteReport(route.id, route.deployment_id, route.status, route.status, reason=words, begins_warm_up=True)


class Warmer:
    """Warms replicas up from an event loop in a thread of its own; a worker process has one for each of its hosts.

    A lock in Redis keeps the other workers of the host away from a replica, so that it gets one request at a time.
    """

    def __init__(self, engine: Engine, client: redis.Redis, name: str = "warm-ups") -> None:
        self._engine = engine
        self._client = client
        self._renewals = Renewals(_LOCK_SECONDS / RENEWALS_IN_A_LIFE)
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._tried: dict[UUID, float] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()
        self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._watch()))

    def close(self) -> None:
        """Cancel all warm-ups, and end the thread."""
        asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def warm(self, routes: Iterable[RouteRow]) -> None:
        """Begin with those of these routes that are not under way. Waits for no replica."""
        now = monotonic()
        due = [route for route in routes if self._tried.get(route.id, 0.0) <= now - _EVERY_SECONDS]
        for route in due:
            self._tried[route.id] = now
        if due:
            self._loop.call_soon_threadsafe(self._begin, due)

    def _begin(self, routes: Iterable[RouteRow]) -> None:
        for route in routes:
            if route.id not in self._tasks:
                task = self._loop.create_task(self._warm_alone(route))
                self._tasks[route.id] = task
                task.add_done_callback(partial(self._end, route.id))

    def _end(self, route_id: UUID, task: asyncio.Task[None]) -> None:
        self._tasks.pop(route_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("warm-up broken off; it starts again", route=str(route_id), error=str(error), exc_info=error)

    async def _warm_alone(self, route: RouteRow) -> None:
        """Send the requests of this route, unless another worker sends them."""
        slot = await asyncio.to_thread(self._locked, route.id)
        if slot is None:
            return
        try:
            if parked := _park_request(route):
                await self._send(route, *parked)
            else:
                await self._warm(route, slot)
        finally:
            self._renewals.drop(slot)
            await asyncio.shield(asyncio.to_thread(slot.end))

    def _locked(self, route_id: UUID) -> Slot | None:
        name = f"{KEY_PREFIX}lock:warm-up:{route_id}"
        lock = self._client.lock(name, timeout=_LOCK_SECONDS, blocking=False, thread_local=False)
        with suppress(RedisError):
            if lock.acquire():
                slot = Slot(lock)
                self._renewals.add(slot)
                return slot
        return None

    async def _warm(self, route: RouteRow, slot: Slot) -> None:
        warm_up, address, written_at = route.spec.warm_up, route.address, 0.0
        if warm_up is None or address is None:
            return
        check, progress = route.spec.health_check, WarmUpProgress(warm_up)
        host_name = check.host_header(address) if check else address
        while (request := progress.request) is not None and slot.is_held:
            answer = await warm_up_answer(address, host_name, request, route.wire)
            progress = progress.with_answer(answer)
            if monotonic() - written_at >= _EVERY_SECONDS:
                written_at = monotonic()
                await self._write(route, progress, answer)
            if not answer.is_success:
                await asyncio.sleep(_EVERY_SECONDS)
        while progress.request is None:
            if await self._write(route, progress, progress.last):
                return
            await asyncio.sleep(_EVERY_SECONDS)

    async def _send(self, route: RouteRow, park_request: ParkRequest, step: SleepStep) -> None:
        """Send `sleep` or `wake` once: a later look decides whether to send it again."""
        address = route.address or ""
        host_name = route.spec.health_check.host_header(address) if route.spec.health_check else address
        seconds = _SLEEP_SECONDS if step is SleepStep.ANSWERED else None
        try:
            async with asyncio.timeout(seconds):
                answer = await warm_up_answer(address, host_name, park_request.request, route.wire)
        except TimeoutError:
            answer = WarmUpAnswer(_SLEEP_SECONDS, None, f"no answer within {_SLEEP_SECONDS:g} s")
        report = RouteReport(route.id, route.deployment_id, route.status, route.status)
        if answer.is_success:
            await self._is_written(replace(report, sleep=step))
        else:
            await self._is_written(replace(report, reason=f"{park_request.request}: {answer}"))

    async def _write(self, route: RouteRow, progress: WarmUpProgress, last: WarmUpAnswer | None) -> bool:
        """Report the progress. False while Postgres is away; the caller repeats only the end."""
        report = RouteReport(route.id, route.deployment_id, route.status, route.status, reason=str(progress))
        if progress.request is None:
            report = replace(report, is_warm=True)
            seconds = round(last.seconds, 3) if last else None
            _log.info("replica is warm", route=str(route.id), deployment=route.deployment, last_took=seconds)
        return await self._is_written(report)

    async def _is_written(self, report: RouteReport) -> bool:
        try:
            await asyncio.to_thread(in_transaction, self._engine, partial(record_reports, reports=[report]))
        except AWAY:
            return False
        return True

    async def _watch(self) -> None:
        """Cancel warm-ups of routes that were drained or have failed, also by their clock."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            ids = list(self._tasks)
            self._tried = {route_id: at for route_id, at in self._tried.items() if at > monotonic() - 60}
            if not ids:
                continue
            try:
                among = partial(warming_among, route_ids=ids)
                still = await asyncio.to_thread(in_transaction, self._engine, among)
            except AWAY:
                continue
            for route_id in set(ids) - still:
                if (task := self._tasks.get(route_id)) is not None:
                    task.cancel()

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_default_executor()
