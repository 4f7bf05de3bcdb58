"""The two event tasks: run a handler over what is off, or over what is marked. With them the alarm and the audit."""

import structlog
from psycopg import Connection

from db.audit.invariants import impossible_combinations
from db.commands.execute import execute_pending
from db.connection.transactions import engine, in_transaction
from db.due_work import OpenWork, due_statuses, note_tick, open_work
from domain.model.lifecycle_events import (
    ROUTE_CADENCES,
    WHILE_THERE_IS_WORK,
    DoDeploymentLifecycleEvent,
    DoDeploymentLifecycleIfNeededEvent,
    RouteLifecycleType,
)
from domain.model.states import DeploymentLifecycleStatus
from tasks.app import app
from tasks.hosts.host_timeouts import ask_hosts, keys_of_work, look_at_hosts
from tasks.messaging.queues import ALARM_TASK, AUDIT_TASK, DO_IF_NEEDED_TASK, DO_TASK, host_queue
from tasks.redis.wake import route_key
from tasks.task_settings import settings
from tasks.telemetry.task_metrics import IMPOSSIBLE_STATES
from tasks.worker.composition import coordinator, courier
from tasks.worker.connections import waker
from tasks.worker.route_looks import look_at

_log = structlog.get_logger(__name__)


@app.task(name=DO_TASK)
def do_deployment_lifecycle(lifecycle_type: str, sub_step: str | None = None, interval: float | None = None) -> None:
    """DoDeploymentLifecycle: the long tick. `interval` is set by beat; without it the event always runs."""
    event = DoDeploymentLifecycleEvent.parse(lifecycle_type, sub_step)
    if interval is None or waker().first_of_interval(str(event), interval):
        coordinator().process_deployment_lifecycle(event)


@app.task(name=DO_IF_NEEDED_TASK)
def do_deployment_lifecycle_if_needed(
    lifecycle_type: str, sub_step: str | None = None, interval: float | None = None
) -> None:
    """DoDeploymentLifecycleIfNeeded: the short tick, and the wake after a change."""
    event = DoDeploymentLifecycleIfNeededEvent.parse(lifecycle_type, sub_step)
    if interval is None:
        waker().arrived(str(event))
    elif not waker().first_of_interval(str(event), interval):
        return
    coordinator().process_deployment_lifecycle(event)


@app.task(name=ALARM_TASK)
def wake_what_is_due(interval: float) -> None:
    """The alarm: back-offs and deadlines end within a second, hosts are asked for their work, and events are sent.

    So a quiet fleet has one message a second here, and not one for each of the things that might have been to do. At
    rest not even the worker's own host is sent one: its replicas are probed here.
    """
    if not waker().first_of_interval(ALARM_TASK, interval):
        return
    work, due, keys = in_transaction(engine(), _look)
    here = route_key(RouteLifecycleType.PROBE, settings().host)
    has_more = due or work.has_pending_commands or work.is_unplaced or work.has_events
    probes_here = here in keys and not has_more and host_queue(settings().host) in app.amqp.queues.consume_from
    if work.has_pending_commands:
        waker().after_change(execute_pending(engine()))
    if due:
        waker().deployments(due)
    elif not work.has_pending_commands:
        waker().note_rest()
    if work.is_unplaced:
        ask_hosts(engine(), waker(), *WHILE_THERE_IS_WORK)
    else:
        waker().send(key for key in keys if key != here or not probes_here)
    if _is_time_for(RouteLifecycleType.HOSTS) and look_at_hosts(engine(), waker(), settings().host_silence_seconds):
        waker().routes(RouteLifecycleType.HOSTS)
    if work.has_events:
        courier().look()
    if work.has_rules and _is_time_for(RouteLifecycleType.METRICS):
        waker().routes(RouteLifecycleType.METRICS)
    if probes_here:
        look_at(RouteLifecycleType.PROBE, settings().host)


def _look(connection: Connection) -> tuple[OpenWork, frozenset[DeploymentLifecycleStatus], list[str]]:
    """All that there may be to do, in one transaction: at rest that is all that an alarm costs Postgres.

    With it the statuses that are due, and the keys of looks that hosts have work for.
    """
    note_tick(connection)
    return open_work(connection), due_statuses(connection), keys_of_work(connection, WHILE_THERE_IS_WORK)


def _is_time_for(kind: RouteLifecycleType) -> bool:
    return waker().first_of_interval(route_key(kind), ROUTE_CADENCES[kind])


@app.task(name=AUDIT_TASK)
def audit(interval: float) -> None:
    """Report, in the log, rows that no transaction of ours leaves behind; `rollway doctor` shows them to a person."""
    if not waker().first_of_interval(AUDIT_TASK, interval):
        return
    for finding in in_transaction(engine(), impossible_combinations):
        IMPOSSIBLE_STATES.inc()
        _log.error(finding.sentence, deployment=finding.deployment, code=finding.code)
