"""The task that seals receipts and cuts the past, a page of deployments after the other, until its time is up."""

import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from functools import partial
from uuid import UUID

import structlog
from psycopg import Connection

from db.audit.invariants import chain_page
from db.audit.receipts import seal, unsealed
from db.connection.transactions import engine, in_transaction
from db.due_work import due_statuses
from db.locking.row_locks import lock
from db.outbox import forget_given_up, write_events
from db.replicas.lost_hosts import forget_host
from db.retention import cut_deployment, cut_ended, cut_fleet_rows, hosts_long_down, page_of_past
from domain.outbox.cloud_events import CloudEvent, CloudEventType
from domain.replicas.host_choice import HostNotFoundError
from domain.text.errors import WrongStateError
from tasks.app import app
from tasks.messaging.queues import RETENTION_TASK
from tasks.task_settings import KEY_PREFIX, retention
from tasks.telemetry.task_metrics import IMPOSSIBLE_STATES
from tasks.worker.composition import stopping
from tasks.worker.connections import redis_client, waker

_WORK_SECONDS = 5.0
_RECEIPTS = 200
"""Receipts that are looked for at once."""
_SEAL_SECONDS = 20.0
"""The seconds for which one task seals: some 2 ms for each, so that a minute is enough for what ends in it."""
_EVENTS = 1000
_KEEP_GIVEN_UP = timedelta(days=7)
"""Events that were given up longer ago are forgotten, up to a limit in one task."""
_CUT = f"{KEY_PREFIX}retention:after"
_SEALED = f"{KEY_PREFIX}receipts:after"
_CHECKED = f"{KEY_PREFIX}receipts:checked"
_PLACE_SECONDS = 3600
_log = structlog.get_logger(__name__)


@app.task(name=RETENTION_TASK)
def cut_the_past(interval: float | None = None) -> None:
    """Cut what is too old, round after round over all deployments, for some seconds; the next tick continues there.

    Before that receipts are sealed, and events are forgotten that were given up long ago. Nobody waits for it: a
    deployment that somebody holds is left out, and one that was due while it was held here is looked at right after.
    """
    if interval is not None and not waker().first_of_interval(RETENTION_TASK, interval):
        return
    seal_receipts()
    check_receipts()
    until = time.monotonic() + _WORK_SECONDS
    rows, this_round, after = _cut_of_the_fleet(), Counter[str](), _place(_CUT)
    while time.monotonic() < until and not stopping.is_set():
        cut, after = _cut_page(after)
        this_round += cut
        if after is None:
            if not this_round:
                break
            rows, this_round = rows + this_round, Counter()
    _remember_place(_CUT, after)
    if rows := rows + this_round:
        _log.info("past cut", **rows)
        waker().deployments(in_transaction(engine(), due_statuses))


def _cut_of_the_fleet() -> Counter[str]:
    """What belongs to no deployment."""
    forget = partial(forget_given_up, older_than=_KEEP_GIVEN_UP, limit=_EVENTS)
    rows = in_transaction(engine(), partial(cut_ended, retention=retention()))
    lost = in_transaction(engine(), partial(hosts_long_down, retention=retention()))
    for host in lost:
        with suppress(WrongStateError, HostNotFoundError):  # it is back, or somebody was faster
            in_transaction(engine(), partial(forget_host, name=host))
    return +(rows + Counter(outbox=in_transaction(engine(), forget), hosts=len(lost)))


def seal_receipts() -> None:
    """Seal the rollouts that have ended, a transaction for each: before anything is cut that they tell of.

    The next task continues behind them, so that those that cannot be made, however many, keep no others waiting.
    """
    until, is_more = time.monotonic() + _SEAL_SECONDS, True
    while is_more and time.monotonic() < until and not stopping.is_set():
        rollouts = in_transaction(engine(), partial(unsealed, limit=_RECEIPTS, after=_place(_SEALED)))
        is_more = len(rollouts) == _RECEIPTS
        _remember_place(_SEALED, rollouts[-1][1] if is_more else None)
        for deployment_id, rollout_id in rollouts:
            try:
                in_transaction(engine(), partial(_seal, deployment_id=deployment_id, rollout_id=rollout_id))
            except Exception:  # noqa: BLE001  (whatever it is, it belongs to one rollout)
                _log.exception("receipt of a rollout not made", rollout=str(rollout_id))


def _seal(connection: Connection, deployment_id: UUID, rollout_id: UUID) -> None:
    """Seal it and publish its hash: a copy elsewhere proves later that nobody rewrote the whole chain."""
    lock(connection, [deployment_id])
    if receipt := seal(connection, deployment_id, rollout_id):
        sentence = f"receipt {receipt.number} is sealed with the SHA-256 {receipt.sha256}"
        event = CloudEvent(CloudEventType.RECEIPT_SEALED, deployment_id, "workers", sentence, rollout_id)
        write_events(connection, [event])


def check_receipts() -> None:
    """Look at the next receipts of all, and from the first on again after the last: at each once a day, and oftener."""
    place = redis_client().get(_CHECKED)
    deployment, _, number = place.decode().partition("/") if isinstance(place, bytes) else (UUID(int=0).hex, "", "0")
    page = in_transaction(engine(), partial(chain_page, after=(UUID(deployment), int(number))))
    for finding in page.findings:
        IMPOSSIBLE_STATES.inc()
        _log.error(finding.sentence, deployment=finding.deployment, code=finding.code)
    if page.last is None:
        redis_client().delete(_CHECKED)
    else:
        redis_client().set(_CHECKED, f"{page.last[0]}/{page.last[1]}", ex=_PLACE_SECONDS)


def _cut_page(after: UUID | None) -> tuple[Counter[str], UUID | None]:
    """Cut a page of deployments, each in a transaction of its own, so that one with much to cut holds up no other."""
    page = in_transaction(engine(), lambda connection: page_of_past(connection, retention(), after))
    rows = in_transaction(engine(), partial(cut_fleet_rows, retention=retention()))
    for deployment_id in page.ids:
        try:
            cut = partial(cut_deployment, retention=retention(), deployment_id=deployment_id)
            rows += in_transaction(engine(), cut)
        except Exception:  # noqa: BLE001  (whatever it is, it belongs to one deployment)
            _log.exception("past of a deployment not cut", deployment=str(deployment_id))
    return +rows, page.last


def _place(key: str) -> UUID | None:
    """Return where the last task stopped."""
    place = redis_client().get(key)
    return UUID(place.decode()) if isinstance(place, bytes) else None


def _remember_place(key: str, after: UUID | None) -> None:
    if after is None:
        redis_client().delete(key)
    else:
        redis_client().set(key, str(after), ex=_PLACE_SECONDS)
