"""Keeps the answers of a rollout, as proxies reported them: intervals, and the counters for the next interval."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg import Connection
from pydantic_core import to_json

from db.connection.arrays import columns
from db.judge_evidence import fold
from domain.model.answer_counts import Answers, Copies, Counters, Interval

# two servers for proxies may read the counters at once: the first to write has counted, the other writes nothing
_LOCK = "SELECT pg_try_advisory_xact_lock(hashtext('rollway intervals'), hashtext(%s::text))"

_LAST_ID = "SELECT coalesce(max(id), 0) FROM intervals WHERE rollout_id = %s"

# quiet intervals in a row share a row, however long a rollout waits
_GROW = """
    UPDATE intervals i SET id = %(id)s, at = %(at)s, seconds = i.seconds + %(seconds)s
     WHERE rollout_id = %(rollout_id)s AND id = %(id)s - 1 AND refused = 0 AND copies = 0
       AND reporting = %(reporting)s AND live = %(live)s
       AND NOT EXISTS (SELECT FROM answers a WHERE a.rollout_id = i.rollout_id AND a.interval_id = i.id)
"""

_INTERVAL = """
    INSERT INTO intervals (rollout_id, id, at, seconds, reporting, live, refused, copies, copies_failed)
    VALUES (%(rollout_id)s, %(id)s, %(at)s, %(seconds)s, %(reporting)s, %(live)s, %(refused)s, %(copies)s,
            %(copies_failed)s)
"""

_ANSWERS = """
    INSERT INTO answers
           (rollout_id, interval_id, revision_id,
            done, failed, first_byte, cut, begun, refused, again, again_failed, redirected)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""

_COUNTED = columns("node_id text, uptime int4, refused int8, copies int8, copies_failed int8, of_revisions jsonb")

_NOTE_COUNTERS = f"""
    INSERT INTO proxy_counters (rollout_id, node_id, uptime, refused, copies, copies_failed, of_revisions)
    SELECT %(rollout_id)s, u.* FROM {_COUNTED} ORDER BY node_id
    ON CONFLICT (rollout_id, node_id) DO UPDATE
       SET uptime = excluded.uptime, refused = excluded.refused, copies = excluded.copies,
           copies_failed = excluded.copies_failed, of_revisions = excluded.of_revisions
"""

_COUNTERS = """
    SELECT node_id, uptime, of_revisions, refused, copies, copies_failed FROM proxy_counters WHERE rollout_id = %s
"""

_INTERVALS = """
    SELECT i.id, i.at, i.seconds, i.reporting, i.live, i.refused, i.copies, i.copies_failed,
           a.revision_id, a.done, a.failed, a.first_byte, a.cut, a.begun, a.refused,
           a.again, a.again_failed, a.redirected
      FROM intervals i LEFT JOIN answers a ON a.rollout_id = i.rollout_id AND a.interval_id = i.id
     WHERE i.rollout_id = %s
     ORDER BY i.id, a.revision_id
"""
_ANSWERS_FROM = 8
"""The index of the first column about answers."""


def record_interval(
    connection: Connection[Any], rollout_id: UUID, interval: Interval, counters: Mapping[str, Counters]
) -> bool:
    """Write the next interval of a rollout, and each proxy's counters at its end, by node id.

    A judge's sums grow by it. Returns False, and writes nothing, when another server has written an interval with this
    id, or is about to.
    """
    ((is_alone,),) = connection.execute(_LOCK, (rollout_id,)).fetchall()
    ((last,),) = connection.execute(_LAST_ID, (rollout_id,)).fetchall() if is_alone else [(None,)]
    if last != interval.id - 1:
        return False
    values = {
        "rollout_id": rollout_id,
        "id": interval.id,
        "at": interval.at,
        "seconds": interval.seconds,
        "reporting": interval.reporting,
        "live": interval.live,
        "refused": interval.refused,
        "copies": interval.copies.done,
        "copies_failed": interval.copies.failed,
    }
    is_quiet = not interval.of and not interval.refused and not interval.copies.done
    fold(connection, rollout_id, interval)
    if not (is_quiet and connection.execute(_GROW, values).rowcount):
        connection.execute(_INTERVAL, values)
    with connection.cursor() as cursor:
        cursor.executemany(
            _ANSWERS,
            [(rollout_id, interval.id, revision, *_counts(its)) for revision, its in interval.of.items()],
        )
    rows = [
        (node, its.uptime, its.refused, its.copies.done, its.copies.failed, to_json(_to_json(its)))
        for node, its in counters.items()
    ]
    if rows:
        connection.execute(_NOTE_COUNTERS, _COUNTED.arrays(rows, rollout_id=rollout_id))
    return True


def intervals_of(connection: Connection[Any], rollout_id: UUID) -> list[Interval]:
    """The intervals of a rollout, in their order.

    A quiet interval may have grown out of quiet ones before it, whose ids are gone then: its seconds are those of all.
    """
    rows = connection.execute(_INTERVALS, (rollout_id,))
    by_id: dict[int, tuple[Any, ...]] = {}
    of: defaultdict[int, dict[UUID, Answers]] = defaultdict(dict)
    for row in rows:
        number, *fields = row[:_ANSWERS_FROM]
        revision, answer_count, failed, first_byte, *rest = row[_ANSWERS_FROM:]
        by_id[number] = tuple(fields)
        if revision is not None:
            of[number][revision] = Answers(answer_count, failed, tuple(first_byte), *rest)
    return [
        Interval(number, at, seconds, of[number], reporting, live, refused, Copies(*copies))
        for number, (at, seconds, reporting, live, refused, *copies) in by_id.items()
    ]


def counters_of(connection: Connection[Any], rollout_id: UUID) -> dict[str, Counters]:
    """Each proxy's counters at the last look of this rollout, by node id."""
    return {
        node: Counters(uptime, _from_json(of_revisions), refused, Copies(*copies))
        for node, uptime, of_revisions, refused, *copies in connection.execute(_COUNTERS, (rollout_id,))
    }


def _to_json(counters: Counters) -> dict[str, Any]:
    return {str(revision): _counts(its) for revision, its in counters.of.items()}


def _counts(its: Answers) -> list[Any]:
    others = [its.cut, its.begun, its.refused, its.again, its.again_failed, its.redirected]
    return [its.done, its.failed, list(its.first_byte), *others]


def _from_json(of_revisions: Mapping[str, Any]) -> dict[UUID, Answers]:
    return {
        UUID(revision): Answers(answer_count, failed, tuple(first_byte), *rest)
        for revision, (answer_count, failed, first_byte, *rest) in of_revisions.items()
    }
