"""The reads for people, a page at a time: a part of a list, and the cursor at which the next page begins."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from psycopg import Connection
from psycopg.rows import DictRow, class_row, dict_row, scalar_row

from db.views.deployment_view import DeploymentView
from db.views.deployment_views import existing_deployments
from db.views.rollout_views import KeptRollout, RolloutView, rollouts_by_id
from db.views.timeline import REVISIONS, HistoryView, RevisionView, shown
from domain.text.errors import InvalidInputError

T = TypeVar("T")

_NAMES = """
    SELECT name FROM deployments
     WHERE lifecycle <> 'destroyed' AND name > %(after)s AND (%(names)s::text[] IS NULL OR name = ANY(%(names)s))
       AND starts_with(name, %(prefix)s)
     ORDER BY name LIMIT %(limit)s
"""

_REVISIONS = f"""
    {REVISIONS}
     WHERE v.deployment_id = %(deployment)s AND (%(before)s::uuid IS NULL OR v.id < %(before)s)
       AND starts_with(v.name, %(prefix)s)
     ORDER BY v.id DESC LIMIT %(limit)s
"""

_ROLLOUTS = """
    SELECT id FROM rollouts
     WHERE deployment_id = %(deployment)s AND (%(before)s::uuid IS NULL OR id < %(before)s)
     ORDER BY id DESC LIMIT %(limit)s
"""

# the text of those of the page alone is read as JSON
_KEPT = """
    SELECT page.rollout_id AS id, told."from" AS from_revision, told."to" AS to_revision, told.outcome,
           told.started_at, told.ended_at, told.actor, told.reason, page.number
      FROM (SELECT r.rollout_id, r.number, r.text FROM receipts r
             WHERE r.deployment_id = %(deployment)s AND (%(before)s::bigint IS NULL OR r.number < %(before)s)
               AND NOT EXISTS (SELECT FROM rollouts o WHERE o.id = r.rollout_id)
             ORDER BY r.number DESC LIMIT %(limit)s) page,
           json_to_record(page.text::json) AS told("from" text, "to" text, outcome text, started_at timestamptz,
                                                   ended_at timestamptz, actor text, reason text)
     ORDER BY page.number DESC
"""

_HISTORY = """
    SELECT id, phase, result, error_code, target, actor, message, attempts, rollout_id, created_at, updated_at
      FROM deployment_history
     WHERE deployment_id = %(deployment)s AND (%(at)s::timestamptz IS NULL OR (updated_at, id) < (%(at)s, %(before)s))
       AND (NOT %(is_of_people)s OR result = 'asked')
     ORDER BY updated_at DESC, id DESC LIMIT %(limit)s
"""

_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """`next`: the cursor of the next page; None on the last one."""

    items: Sequence[T]
    next: str | None


def deployments_page(
    connection: Connection[Any], names: Sequence[str] | None, cursor: str, limit: int, prefix: str = ""
) -> Page[DeploymentView]:
    """Deployments not destroyed, by name. `names`: only these, if there are such; `prefix`: how names begin."""
    parameters = {
        "after": cursor,
        "names": None if names is None else list(names),
        "limit": limit + 1,
        "prefix": prefix,
    }
    found_names = connection.cursor(row_factory=scalar_row).execute(_NAMES, parameters).fetchall()
    last = found_names[limit - 1] if len(found_names) > limit else None
    return Page(existing_deployments(connection, found_names[:limit]), last)


def revisions_page(
    connection: Connection[Any], deployment: UUID, cursor: str, limit: int, prefix: str = ""
) -> Page[RevisionView]:
    """The newest first, the values of their variables masked. `prefix`: how their names begin."""
    rows = connection.cursor(row_factory=class_row(RevisionView))
    views = rows.execute(_REVISIONS, {**_parameters(deployment, cursor, limit), "prefix": prefix}).fetchall()
    last = str(views[limit - 1].id) if len(views) > limit else None
    return Page([shown(revision) for revision in views[:limit]], last)


def rollouts_page(connection: Connection[Any], deployment: UUID, cursor: str, limit: int) -> Page[RolloutView]:
    """The newest first, ended or under way."""
    ids = connection.cursor(row_factory=scalar_row)
    keys: list[UUID] = ids.execute(_ROLLOUTS, _parameters(deployment, cursor, limit)).fetchall()
    views = rollouts_by_id(connection, keys[:limit])
    return Page(
        [views[rollout] for rollout in keys[:limit]],
        str(keys[limit - 1]) if len(keys) > limit else None,
    )


def kept_page(connection: Connection[Any], deployment: UUID, cursor: str, limit: int) -> Page[KeptRollout]:
    """Read the rollouts that only their receipts keep, the newest first."""
    if cursor and not _NUMBER.fullmatch(cursor):
        raise _no_cursor()
    parameters = {"deployment": deployment, "before": int(cursor) if cursor else None, "limit": limit + 1}
    rows = connection.cursor(row_factory=dict_row).execute(_KEPT, parameters).fetchall()
    numbers = [row.pop("number") for row in rows]
    return Page([KeptRollout(**row) for row in rows[:limit]], str(numbers[limit - 1]) if len(rows) > limit else None)


def history_page(
    connection: Connection[Any], deployment: UUID, cursor: str, limit: int, *, is_of_people: bool = False
) -> Page[HistoryView]:
    """The newest first. `is_of_people`: only what people did."""
    at, before = history_place(cursor)
    parameters = {
        "deployment": deployment,
        "at": at,
        "before": before,
        "is_of_people": is_of_people,
        "limit": limit + 1,
    }
    rows = connection.cursor(row_factory=dict_row).execute(_HISTORY, parameters).fetchall()
    last = history_cursor(rows[limit - 1]) if len(rows) > limit else None
    return Page([HistoryView(**{name: row[name] for name in row if name != "id"}) for row in rows[:limit]], last)


def history_place(cursor: str) -> tuple[datetime | None, UUID | None]:
    """The time and the id of the record that a page of history begins behind; None where it begins with the newest."""
    at, _, before = cursor.partition("/")
    if not cursor:
        return None, None
    return _instant(at), _uuid(before)


def history_cursor(record: DictRow) -> str:
    """The place behind a record."""
    return f"{record['updated_at'].isoformat()}/{record['id']}"


def _parameters(deployment: UUID, cursor: str, limit: int) -> dict[str, object]:
    return {"deployment": deployment, "before": _uuid(cursor) if cursor else None, "limit": limit + 1}


def _uuid(cursor: str) -> UUID:
    try:
        return UUID(cursor)
    except ValueError:
        raise _no_cursor() from None


def _instant(cursor: str) -> datetime:
    try:
        return datetime.fromisoformat(cursor)
    except ValueError:
        raise _no_cursor() from None


def _no_cursor() -> InvalidInputError:
    return InvalidInputError("cursor: must be the `next` of the page before", field="cursor")
