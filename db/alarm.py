"""Tells an alarm what there is to do, besides what is due and what hosts have work for."""

from typing import NamedTuple

from psycopg import Connection
from psycopg.rows import class_row

from db.locking.statuses import IS_UNPLACED


class OpenWork(NamedTuple):
    """Whether there is any of what an alarm looks after.

    `has_events`: whether one may have to be sent, and one that stands behind another may be among them. `has_rules`:
    whether there is any rule of autoscaling, so that there may be metrics to read.
    """

    is_wished: bool
    is_unplaced: bool
    has_events: bool
    has_rules: bool


_OPEN_WORK = f"""
    SELECT EXISTS (SELECT FROM wishes) AS is_wished,
           EXISTS (SELECT FROM routes WHERE {IS_UNPLACED}) AS is_unplaced,
           EXISTS (SELECT FROM outbox WHERE given_up_at IS NULL AND due_at <= statement_timestamp()) AS has_events,
           EXISTS (SELECT FROM autoscaling_rules) AS has_rules
"""


def open_work(connection: Connection) -> OpenWork:
    """Look at all of it at once: the wait for an answer costs more than what is asked."""
    (found,) = connection.cursor(row_factory=class_row(OpenWork)).execute(_OPEN_WORK).fetchall()
    return found
