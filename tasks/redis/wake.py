"""Wakes: events that are sent right after the commit of a change, so that nothing waits for a tick."""

import base64
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import uuid4

import redis
import structlog
from celery.signals import after_task_publish
from redis.exceptions import RedisError

from domain.handlers.dispatch import HANDLERS, woken_by
from domain.model.lifecycle_events import DoDeploymentLifecycleEvent, RouteLifecycleType
from domain.model.states import DeploymentLifecycleStatus
from domain.replicas.host_choice import EXTERNAL
from tasks.messaging.envelope import made_anew
from tasks.messaging.queues import DO_IF_NEEDED_TASK, DO_ROUTE_TASK, LIFECYCLE_QUEUE, ROUTES_QUEUE, host_queue
from tasks.task_settings import KEY_PREFIX, TRAFFIC_CHANNEL

_QUEUED_SECONDS = 5
MOST_WAITING = 100
"""The limit of events in a queue: a worker that comes back to it has enough to begin with."""
_SEND = """
for n = 1, #KEYS, 2 do
    if redis.call('SET', KEYS[n], 1, 'NX', 'EX', ARGV[1]) and redis.call('LLEN', KEYS[n + 1]) < tonumber(ARGV[2]) then
        redis.call('LPUSH', KEYS[n + 1], ARGV[3 + (n + 1) / 2])
    end
end
if ARGV[3] ~= '' then
    redis.call('PUBLISH', ARGV[3], '')
end
"""
"""Sends each message whose mark was not set into its queue, if that has room; then it publishes."""
_REST, _REST_MILLISECONDS = f"{KEY_PREFIX}rest", 2500
"""The mark of a fleet at rest, and its life: two alarms may be missing before short ticks continue."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Waker:
    """Sends events that are not queued already. One that cannot be sent costs the wait for a tick, never the work."""

    client: redis.Redis

    def deployments(self, statuses: Iterable[DeploymentLifecycleStatus]) -> None:
        """Wake the handlers that look at these statuses."""
        self.send(events_of(statuses))

    def after_change(self, statuses: Collection[DeploymentLifecycleStatus]) -> None:
        """Deployments that are in these statuses now were changed: wake their handlers, and proxies."""
        if statuses:
            self.send(events_of(statuses), traffic=True)

    def routes(self, *kinds: RouteLifecycleType) -> None:
        """Wake these looks at routes; the worker that takes one for all hosts sends each host its own."""
        self.send(map(route_key, kinds))

    def routes_on(self, hosts: Iterable[str], *kinds: RouteLifecycleType) -> None:
        self.send(route_key(kind, host) for host in hosts for kind in kinds)

    def send(self, keys: Iterable[str], *, traffic: bool = False) -> None:
        """Send the events of these keys, those that are queued already excepted: one round trip.

        `traffic`: what proxies should know may have changed. Their server is told, which also reads by itself.
        """
        messages = {key: _message(key) for key in keys}
        if not messages and not traffic:
            return
        places = [place for key, (_, queue, _) in messages.items() for place in (_queued(key), f"{KEY_PREFIX}{queue}")]
        texts = [text for _, _, text in messages.values()]
        try:
            channel = TRAFFIC_CHANNEL if traffic else ""
            self.client.eval(_SEND, len(places), *places, _QUEUED_SECONDS, MOST_WAITING, channel, *texts)
        except RedisError as error:
            from tasks.telemetry.task_metrics import WAKES_LOST  # noqa: PLC0415  (a command line counts nothing unless it must)

            for key in messages:
                WAKES_LOST.inc()
                _log.warning("wake not sent; the next tick does it", key=key, error=str(error))
            if traffic:
                _log.warning("traffic not announced; it is read within two seconds", error=str(error))
            return
        for task, queue, _ in messages.values():
            after_task_publish.send(sender=task, routing_key=queue)

    def arrived(self, key: str) -> None:
        """The event has left the queue, so the next wake is sent again."""
        try:
            self.client.delete(_queued(key))
        except RedisError:
            _log.warning("wake key not deleted", key=key)

    def first_of_interval(self, key: str, interval: float) -> bool:
        """True for the first tick of an interval, however many beats sent one."""
        life = int(interval * 800)  # milliseconds; less than the interval, or a beat's own next tick would be dropped
        return bool(self.client.set(f"{KEY_PREFIX}tick:{key}:{interval}", 1, nx=True, px=life))

    def note_rest(self) -> None:
        """An alarm has found nothing due: until the next ones short ticks need not look for it too."""
        self.client.set(_REST, 1, px=_REST_MILLISECONDS)

    def is_at_rest(self) -> bool:
        """Whether the last alarm found nothing due, a moment ago."""
        return bool(self.client.exists(_REST))

    def has_room(self, queue: str) -> bool:
        """Whether fewer than MOST_WAITING messages wait in this queue.

        So a queue that nobody reads for an hour does not grow for an hour, and no message must be dropped by its age,
        which a worker could only judge by a clock of its own.
        """
        return int(self.client.llen(f"{KEY_PREFIX}{queue}")) < MOST_WAITING


def _queued(key: str) -> str:
    return f"{KEY_PREFIX}queued:{key}"


def events_of(statuses: Iterable[DeploymentLifecycleStatus]) -> list[str]:
    """The keys of the events whose handlers look at these statuses, sorted."""
    return sorted({str(event) for event in map(woken_by, statuses) if event is not None})


def route_key(kind: RouteLifecycleType, host: str | None = None) -> str:
    """The key of a look at routes; with `host`, of the look on that host alone."""
    return f"routes/{kind}@{host}" if host else f"routes/{kind}"


def _deployment_arguments(event: DoDeploymentLifecycleEvent) -> dict[str, str | None]:
    return {"lifecycle_type": event.lifecycle_type.value, "sub_step": event.sub_step and event.sub_step.value}


def _message(key: str) -> tuple[str, str, str]:
    """The task of an event's key, the name of its queue, and the message, as Celery would write it."""
    event, _, host = key.partition("@")
    task, arguments, queue = _MESSAGES[event]
    if host:
        arguments, queue = {**arguments, "host": host}, queue if host == EXTERNAL else host_queue(host)
    body = base64.b64encode(json.dumps([[], arguments, {}]).encode()).decode()
    headers = {"lang": "py", "task": task, "id": str(uuid4()), "ignore_result": True}
    return task, queue, json.dumps(made_anew(body, headers, queue))


_MESSAGES: dict[str, tuple[str, dict[str, str | None], str]] = {
    **{str(event): (DO_IF_NEEDED_TASK, _deployment_arguments(event), LIFECYCLE_QUEUE) for event in HANDLERS},
    **{
        route_key(kind): (DO_ROUTE_TASK, {"route_lifecycle_type": kind.value}, ROUTES_QUEUE)
        for kind in RouteLifecycleType
    },
}
"""The task, its arguments and its queue, by event."""
