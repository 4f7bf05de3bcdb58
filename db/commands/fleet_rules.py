"""What is set for the whole fleet: freezes and groups."""

from collections.abc import Callable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from psycopg import Connection
from psycopg.rows import scalar_row

from db.connection.transactions import database_now
from db.fleet_gates import all_freezes
from db.locking.row_locks import mark_unheld
from domain.commands.base import Command
from domain.commands.fleet_commands import DeleteFreeze, DeleteGroup, SetFreeze, SetGroup
from domain.steering.gates import FreezeNotFoundError, GroupedAlreadyError, GroupNotFoundError
from domain.text.errors import InvalidInputError

_SET_FREEZE = """
    INSERT INTO freezes (name, cron, time_zone, duration_seconds, starts_at, ends_at, deployments, groups, pauses,
                         actor, reason)
    VALUES (%(name)s, %(cron)s, %(time_zone)s, %(duration_seconds)s, %(starts_at)s, %(ends_at)s, %(deployments)s,
            %(groups)s, %(pauses)s, %(actor)s, %(reason)s)
    ON CONFLICT (name) DO UPDATE
       SET cron = excluded.cron, time_zone = excluded.time_zone, duration_seconds = excluded.duration_seconds,
           starts_at = excluded.starts_at, ends_at = excluded.ends_at, deployments = excluded.deployments,
           groups = excluded.groups, pauses = excluded.pauses, actor = excluded.actor, reason = excluded.reason
"""

_SET_GROUP = """
    INSERT INTO deployment_groups (name, most_at_once, in_order, actor, reason)
    VALUES (%(group)s, %(most_at_once)s, %(in_order)s, %(actor)s, %(reason)s)
    ON CONFLICT (name) DO UPDATE
       SET most_at_once = excluded.most_at_once, in_order = excluded.in_order, actor = excluded.actor,
           reason = excluded.reason
"""

_SET_MEMBERS = """
    INSERT INTO deployment_group_members (deployment, group_name, position)
    SELECT u.deployment, %(group)s, u.position
      FROM unnest(%(deployments)s::text[]) WITH ORDINALITY AS u (deployment, position)
     ORDER BY u.deployment
    ON CONFLICT DO NOTHING
    RETURNING deployment
"""


def set_freeze(connection: Connection, command: SetFreeze) -> dict[str, Any]:
    """Make the freeze, or replace it. Raises InvalidInputError for a time zone that is none."""
    if command.cron is not None:
        _check_zone(command.time_zone)
    now = database_now(connection)
    values = command.with_window(now).model_dump(include=set(SetFreeze.model_fields) - {"deployments", "groups"}) | {
        "name": command.freeze,
        "time_zone": command.time_zone if command.cron is not None else None,
        "deployments": list(command.deployments),
        "groups": list(command.groups),
    }
    connection.execute(_SET_FREEZE, values)
    _look_anew(connection)
    window = next(freeze.window for freeze in all_freezes(connection) if freeze.name == command.freeze)
    end, start = window.ends(now), window.next_start(now)
    return {
        "freeze": command.freeze,
        "frozen_until": end.isoformat() if end else None,
        "starts_at": start.isoformat() if start else None,
        "deployments": list(command.deployments),
        "groups": list(command.groups),
    }


def delete_freeze(connection: Connection, command: DeleteFreeze) -> dict[str, Any]:
    """End it. Raises FreezeNotFoundError."""
    if not connection.execute("DELETE FROM freezes WHERE name = %s", (command.freeze,)).rowcount:
        message = f"there is no freeze {command.freeze}; 'rollway freezes' lists those that exist"
        raise FreezeNotFoundError(message, freeze=command.freeze)
    _look_anew(connection)
    return {"freeze": command.freeze}


def set_group(connection: Connection, command: SetGroup) -> dict[str, Any]:
    """Make the group, or replace it. Raises GroupedAlreadyError for a deployment that is in another one."""
    values = command.model_dump(include={"group", "most_at_once", "in_order", "actor", "reason"})
    connection.execute(_SET_GROUP, values)
    connection.execute("DELETE FROM deployment_group_members WHERE group_name = %s", (command.group,))
    members = {"group": command.group, "deployments": list(command.deployments)}
    members_elsewhere = connection.cursor(row_factory=scalar_row).execute(_SET_MEMBERS, members).fetchall()
    for deployment in command.deployments:
        if deployment not in members_elsewhere:
            raise _elsewhere(connection, deployment)
    _look_anew(connection)
    return {**members, "most_at_once": command.most_at_once, "in_order": command.in_order}


def delete_group(connection: Connection, command: DeleteGroup) -> dict[str, Any]:
    """End it. Raises GroupNotFoundError."""
    if not connection.execute("DELETE FROM deployment_groups WHERE name = %s", (command.group,)).rowcount:
        message = f"there is no group {command.group}; 'rollway groups' lists those that exist"
        raise GroupNotFoundError(message, group=command.group)
    _look_anew(connection)
    return {"group": command.group}


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        message = f"time_zone: there is no time zone {name!r}; it is called like Europe/Berlin, or UTC"
        raise InvalidInputError(message, field="time_zone") from None


def _elsewhere(connection: Connection, deployment: str) -> GroupedAlreadyError:
    query = "SELECT group_name FROM deployment_group_members WHERE deployment = %s"
    row = connection.execute(query, (deployment,)).fetchone()
    group = row[0] if row else "another"
    message = f"{deployment} is in group {group} already, and a deployment is in one at most; take it out there first"
    return GroupedAlreadyError(message, deployment=deployment, group=group)


def _look_anew(connection: Connection) -> None:
    """Mark deployments that waited, since they may continue, and those that continued, since they may have to wait."""
    mark_unheld(connection, "d.lifecycle = 'deploying' AND d.paused_at IS NULL", {})


EFFECTS: Mapping[type[Command], Callable[[Connection, Any], dict[str, Any]]] = {
    SetFreeze: set_freeze,
    DeleteFreeze: delete_freeze,
    SetGroup: set_group,
    DeleteGroup: delete_group,
}
