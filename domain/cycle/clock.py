"""The clock of a rollout, which its deadlines go by: stopped, and going on."""

from dataclasses import replace
from datetime import datetime

from domain.model.deployment import Rollout


def with_clock_stopped(rollout: Rollout, now: datetime) -> Rollout:
    """The rollout waits for a person, or is held: no deadline comes nearer."""
    return rollout if rollout.clock_stopped_at else replace(rollout, clock_stopped_at=now)


def with_clock_running(rollout: Rollout, now: datetime) -> Rollout:
    """The clock goes on: what it counts moves by the time that it stood still.

    Progress that came while it stood still, at p, leaves less of that time to move by:

        progress ──10 s── stopped ──60 s── now             the last progress is still 10 s ago
        stopped ──20 s── progress at p ──40 s── now        the last progress is now, and not 20 s ahead
    """
    stopped_at = rollout.clock_stopped_at
    if stopped_at is None:
        return rollout
    return replace(
        rollout,
        deadline=rollout.deadline + (now - stopped_at),
        last_progress_at=rollout.last_progress_at + (now - max(stopped_at, rollout.last_progress_at)),
        clock_stopped_at=None,
    )
