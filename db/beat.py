"""Notes when a tick of beat last reached a worker, and tells what an alarm finds to do: beat knows no database."""

from typing import NamedTuple

from psycopg import Connection
from psycopg.rows import class_row

# a time that lies ahead is from before the database's clock was set back
_NOTE = """
    INSERT INTO beat DEFAULT VALUES
    ON CONFLICT (is_only) DO UPDATE SET ticked_at = clock_timestamp()
     WHERE beat.ticked_at NOT BETWEEN clock_timestamp() - interval '3 seconds' AND clock_timestamp()
"""


def note_tick(connection: Connection) -> None:
    """A tick has come. Written down every 3 s at most."""
    connection.execute(_NOTE)


class OpenWork(NamedTuple):
    """Whether there is any of what an alarm looks after.

    `has_events`: whether one may have to be sent, and one that stands behind another may be among them. `has_rules`:
    whether there is any rule of autoscaling, so that there may be metrics to read.
    """

    is_wished: bool
    is_unplaced: bool
    has_events: bool
    has_rules: bool


_OPEN_WORK = """
    SELECT EXISTS (SELECT FROM wishes) AS is_wished,
           EXISTS (SELECT FROM routes WHERE host IS NULL AND stopped_at IS NULL) AS is_unplaced,
           EXISTS (SELECT FROM outbox WHERE given_up_at IS NULL AND due_at <= statement_timestamp()) AS has_events,
           EXISTS (SELECT FROM autoscaling_rules) AS has_rules
"""


def open_work(connection: Connection) -> OpenWork:
    """Look at all of it at once: the wait for an answer costs more than what is asked."""
    (found,) = connection.cursor(row_factory=class_row(OpenWork)).execute(_OPEN_WORK).fetchall()
    return found
