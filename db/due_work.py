"""What there may be to do: statuses that are due, and what else the alarm looks for; and that beat has ticked."""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from db.locking.statuses import IS_PLACEABLE, known_status
from domain.model.states import DeploymentLifecycleStatus

# a time that lies ahead is from before the database's clock was set back
_NOTE = """
    INSERT INTO beat (ticked_at)
    SELECT clock_timestamp()
     WHERE CASE WHEN EXISTS (SELECT FROM beat
                              WHERE ticked_at BETWEEN clock_timestamp() - interval '3 seconds' AND clock_timestamp())
                THEN false ELSE pg_try_advisory_xact_lock(hashtext('rollway beat')) END
    ON CONFLICT (is_only) DO UPDATE SET ticked_at = excluded.ticked_at
"""


def note_tick(connection: Connection) -> None:
    """A tick has come. Written down every 3 s at most, and never waited for: a worker may be cut off as it writes."""
    connection.execute(_NOTE)


class OpenWork(NamedTuple):
    """Whether there is any of what an alarm looks after.

    `has_events`: whether one may be due; it may still have to wait for the event before it. `has_rules`:
    whether there is any rule of autoscaling, so that there may be metrics to read.
    """

    has_pending_commands: bool
    is_unplaced: bool
    has_events: bool
    has_rules: bool


_OPEN_WORK = f"""
    SELECT EXISTS (SELECT FROM wishes) AS has_pending_commands,
           EXISTS (SELECT FROM routes r WHERE {IS_PLACEABLE}) AS is_unplaced,
           EXISTS (SELECT FROM outbox WHERE given_up_at IS NULL AND due_at <= statement_timestamp()) AS has_events,
           EXISTS (SELECT FROM autoscaling_rules) AS has_rules
"""


def open_work(connection: Connection) -> OpenWork:
    """Look at all of it at once: the wait for an answer costs more than what is asked."""
    (row,) = connection.cursor(row_factory=class_row(OpenWork)).execute(_OPEN_WORK).fetchall()
    return row


def statuses_of(connection: Connection, deployment_ids: Iterable[UUID]) -> frozenset[DeploymentLifecycleStatus]:
    """The statuses these deployments are in: whose handlers a change of theirs wakes."""
    return _statuses(connection, "id = ANY(%s)", (list(deployment_ids),))


def due_statuses(connection: Connection) -> frozenset[DeploymentLifecycleStatus]:
    """The statuses of marked deployments whose time has come: one look at a partial index."""
    return _statuses(connection, "due_at <= statement_timestamp()")


def _statuses(
    connection: Connection, condition: str, parameters: tuple[object, ...] = ()
) -> frozenset[DeploymentLifecycleStatus]:
    rows = connection.execute(f"SELECT DISTINCT lifecycle, sub_step FROM deployments WHERE {condition}", parameters)
    return frozenset(status for row in rows if (status := known_status(*row)))
