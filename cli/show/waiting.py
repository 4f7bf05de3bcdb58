"""--wait: read a deployment until what was asked for has happened, and show each change on the way."""

import time
from collections.abc import Callable
from uuid import UUID

from cli.exits import DegradedError, RolledBackError, UnreachableError, WaitTimedOutError
from cli.servers import Reader
from cli.show.film import Film
from cli.show.signs import missing_worker
from cli.show.status import overdue, state_of
from db.views.progress import Progress, progress_of
from domain.model import Lifecycle, RolloutOutcome

POLL_SECONDS = 0.1
_LOST_PATIENCE = 15.0

Goal = Callable[[Progress], bool]
"""Whether what was waited for has happened. Raises a refusal when it never will."""


def wait_until(goal: Goal, reader: Reader, deployment_id: UUID, timeout: float, film: Film) -> Progress:
    """The progress that reached the goal; the film shows each change on the way.

    Raises WaitTimedOutError after `timeout` seconds, and what the goal raises.
    """
    with film.rolling():
        while True:
            progress = _read(reader, deployment_id, film)
            film.show(progress)
            if goal(progress):
                film.end(progress.deployment)
                return progress
            if film.seconds > timeout:
                raise _timed_out(progress, timeout)
            time.sleep(POLL_SECONDS)


def _timed_out(progress: Progress, timeout: float) -> WaitTimedOutError:
    view = progress.deployment
    why = missing_worker(progress.signs) or overdue(view) or view.reason
    message = f"waited {timeout:g} s; {view.name} is {state_of(view)}: {why}"
    return WaitTimedOutError(message, deployment=view.name, state=state_of(view))


def rollout_completed(progress: Progress) -> bool:
    """The rollout that the film follows is completed; without a rollout, `settled`.

    Raises RolledBackError when the rollout ended in any other way.
    """
    rollout = progress.rollout
    if rollout is None:
        return settled(progress)
    if rollout.outcome in (None, RolloutOutcome.COMPLETED):
        return rollout.outcome is not None
    why = f": {rollout.back_reason}" if rollout.back_reason else ""
    message = f"the rollout to {rollout.to_revision} was {rollout.outcome.replace('_', ' ')}{why}"
    raise RolledBackError(message, rollout=rollout.id, outcome=rollout.outcome)


def settled(progress: Progress) -> bool:
    """Ready, complete, and nothing of another revision left; or without a revision, since nothing runs then.

    Raises DegradedError when scaling gave up, and RolledBackError when the deployment was destroyed meanwhile.
    """
    view = progress.deployment
    if view.current_revision_id is None:
        return True
    if view.degraded_reason:
        message = f"{view.name} is degraded: {view.degraded_reason}"
        raise DegradedError(message, deployment=view.name)
    if view.lifecycle is Lifecycle.DESTROYED:
        message = f"{view.name} was destroyed meanwhile"
        raise RolledBackError(message, deployment=view.name)
    serving = sum(route.is_serving and route.revision_id == view.current_revision_id for route in view.routes)
    active = sum(route.is_active and route.parked_until is None for route in view.routes)
    return view.lifecycle is Lifecycle.READY and serving == active == view.desired_replicas


def destroyed(progress: Progress) -> bool:
    """Its last replica has gone."""
    return progress.deployment.lifecycle is Lifecycle.DESTROYED


def _read(reader: Reader, deployment_id: UUID, film: Film) -> Progress:
    """Waits through a restart of Postgres."""
    lost_at = time.monotonic()
    while True:
        try:
            return reader.read(progress_of, deployment_id, film.rollout_id, film.last_step)
        except UnreachableError:
            if time.monotonic() - lost_at > _LOST_PATIENCE:
                raise
            time.sleep(0.5)
