"""Keeps what a file that changed settings alone replaced, so that an undo applies it again."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.views.deployment_views import existing_deployments
from db.views.rollout_records import sections, settings_release
from domain.commands.apply.document import Apply, Document
from domain.commands.rollout_commands import Undo

# as `domain.steering.rollout_history.SettingsRelease` has it
_KEEP = """
    UPDATE deployments d
       SET settings_release = jsonb_build_object(
           'before', %(before)s::jsonb, 'after', %(after)s::jsonb, 'revision_id', d.current_revision_id,
           'rollout_id', (SELECT id FROM rollouts WHERE deployment_id = d.id ORDER BY started_at DESC LIMIT 1),
           'is_undone', false)
     WHERE d.name = %(deployment)s AND d.lifecycle <> 'destroyed'
"""
_MARK_UNDONE = """
    UPDATE deployments SET settings_release = settings_release || '{"is_undone": true}' WHERE id = %s
"""


def keep_settings_release(connection: Connection[Any], deployment: str, before: Mapping[str, Any]) -> None:
    """Keep the sections that a file without a rollout replaced, next to those that it set."""
    after = sections(connection, deployment, before)
    connection.execute(_KEEP, {"deployment": deployment, "before": Jsonb(before), "after": Jsonb(after)})


def mark_settings_undone(connection: Connection[Any], deployment_id: UUID) -> None:
    """Mark the last file as undone: a second undo is refused, since it would go further back."""
    connection.execute(_MARK_UNDONE, (deployment_id,))


def settings_to_put_back(connection: Connection[Any], undo: Undo) -> Apply | None:
    """The apply that undoes a file which changed settings alone; None where a rollout, or nothing, came last."""
    view = next(iter(existing_deployments(connection, [undo.deployment])), None)
    release = settings_release(connection, view) if view and undo.revision is None else None
    if release is None or release.is_undone:
        return None
    document = Document.model_validate({"deployment": undo.deployment, **release.before})
    reason = undo.reason or "as before the last file"
    return Apply(request_id=undo.request_id, actor=undo.actor, reason=reason, documents=(document,))
