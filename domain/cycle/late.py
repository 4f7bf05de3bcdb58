"""Says when a deployment that is due has waited too long for a worker: to people, pages and alerts."""

from datetime import datetime, timedelta

from domain.model.states import Lifecycle
from domain.text.numbers import duration

LATE = timedelta(seconds=15)
"""What is due is looked for each second, and a worker that died is missed for some seconds more."""


def overdue(lifecycle: Lifecycle, due_at: datetime | None, now: datetime) -> str:
    """A sentence when no worker looks at what is due; empty when all is well."""
    if due_at is None or now - due_at < LATE or lifecycle is Lifecycle.DESTROYED:
        return ""
    return f"due for {duration(now - due_at)}, but no worker has looked: do workers and beat run?"
