"""Starts of a deployment that failed, as its columns hold them."""

from datetime import datetime
from uuid import UUID

from domain.model.deployment import StartFailures


def start_failures(
    revision_id: UUID | None, in_a_row: int, last_at: datetime | None, came_up_at: datetime | None, short_lives: int
) -> StartFailures | None:
    """None when none has failed. The version before forgets failures by their number, and writes no `came_up_at`."""
    if not in_a_row or revision_id is None or last_at is None:
        return None
    if came_up_at is not None and came_up_at < last_at:
        came_up_at = None
    return StartFailures(revision_id, in_a_row, last_at, came_up_at, short_lives)
