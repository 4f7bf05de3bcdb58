"""Replicas that were killed after their grace, and answers that were cut, on record and in the timeline."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID, uuid4

from psycopg import Connection

from db.connection.arrays import columns, named_row
from db.locking.row_locks import count_change, lock
from db.outbox import write_events
from domain.outbox.cloud_events import CloudEvent, CloudEventType
from domain.replicas.drain import cut_in_words, killed_in_words

PHASE = "stop"

_KILLED = columns("route_id uuid, why text")

# what failed keeps the reason why it failed
_SAY_WHY = f"""
    UPDATE routes r SET status_reason = u.why FROM {_KILLED}
     WHERE r.id = u.route_id AND r.status = 'terminating' AND r.status_reason <> u.why
    RETURNING r.deployment_id, r.id AS route_id
"""

_RECORDS = columns("id uuid, deployment_id uuid, message text")

_RECORD = f"""
    INSERT INTO deployment_history (id, deployment_id, rollout_id, phase, result, target, actor, message)
    SELECT u.id, d.id, d.rollout_id, %(phase)s, %(result)s, concat_ws('/', d.lifecycle, d.sub_step), %(host)s, u.message
      FROM {_RECORDS} JOIN deployments d ON d.id = u.deployment_id
"""

_LAST_RECORD = f"""
    UPDATE deployments d SET history_id = u.id, history_key = NULL FROM {_RECORDS} WHERE d.id = u.deployment_id
"""


class Kill(NamedTuple):
    """A replica that was killed `grace_seconds` after it was asked to end."""

    route_id: UUID
    deployment_id: UUID
    grace_seconds: float


class Cut(NamedTuple):
    """A replica that was asked to end with answers under way, after `max_seconds`."""

    deployment_id: UUID
    max_seconds: float
    answers: int


class _Noted(NamedTuple):
    deployment_id: UUID
    route_id: UUID


def record_kills(connection: Connection, host: str, kills: Iterable[Kill]) -> None:
    """Say of these routes that their replicas were killed, once."""
    by_route = {kill.route_id: kill for kill in kills}
    if not by_route:
        return
    lock(connection, {kill.deployment_id for kill in by_route.values()})
    sentences = [(kill.route_id, killed_in_words(kill.grace_seconds)) for kill in by_route.values()]
    cursor = connection.cursor(row_factory=named_row(_Noted))
    routes = cursor.execute(_SAY_WHY, _KILLED.arrays(sentences)).fetchall()
    if not routes:
        return
    counts = Counter((route.deployment_id, by_route[route.route_id].grace_seconds) for route in routes)
    records = [(uuid4(), owner, killed_in_words(grace, count)) for (owner, grace), count in counts.items()]
    count_change(connection, {owner for _, owner, _ in records})
    _record(connection, "killed", host, records)
    write_events(connection, [_kill_event(route, by_route[route.route_id].grace_seconds) for route in routes])


def record_cuts(connection: Connection, host: str, cuts: Iterable[Cut]) -> None:
    """Say in the timeline how many answers were cut."""
    answers: Counter[tuple[UUID, float]] = Counter()
    for cut in cuts:
        answers[cut.deployment_id, cut.max_seconds] += cut.answers
    lock(connection, {owner for owner, _ in answers})
    records = [(uuid4(), owner, cut_in_words(seconds, count)) for (owner, seconds), count in answers.items()]
    _record(connection, "cut", host, records)
    count_change(connection, {owner for owner, _ in answers})


def _record(connection: Connection, result: str, host: str, records: Sequence[tuple[UUID, UUID, str]]) -> None:
    connection.execute(_RECORD, _RECORDS.arrays(records, phase=PHASE, result=result, host=host))
    connection.execute(_LAST_RECORD, _RECORDS.arrays(records))


def _kill_event(route: _Noted, grace_seconds: float) -> CloudEvent:
    sentence = killed_in_words(grace_seconds)
    return CloudEvent(CloudEventType.REPLICA_KILLED, route.deployment_id, "workers", sentence, route_id=route.route_id)
