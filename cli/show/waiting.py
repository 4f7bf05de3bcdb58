"""--wait: read a deployment until what was asked for has happened, and show each change on the way."""

import time
from collections.abc import Callable

from cli.servers import Reader
from cli.show.film import Film
from cli.show.signs import waits_for_person
from cli.terminal.exits import DegradedError, RolledBackError, UnreachableError, WaitsForPersonError, WaitTimedOutError
from cli.terminal.output import printer
from db.views.timeline import Progress
from domain.commands.base import DEPLOYMENT
from domain.handlers.check_replica import is_settled
from domain.model.deployment import MOST_STARTS
from domain.model.states import Lifecycle, RolloutOutcome

POLL_SECONDS = 0.1
_LOST_PATIENCE = 15.0

Goal = Callable[[Progress], bool]
"""Whether what was waited for has happened. Raises a refusal when it never will."""


def wait_until(goal: Goal, reader: Reader, deployment: str, timeout: float, film: Film) -> Progress:
    """The progress that reached the goal; the film shows each change on the way.

    Raises WaitTimedOutError or WaitsForPersonError after `timeout` seconds, and what the goal raises.
    """
    try:
        with film.rolling():
            while True:
                progress = _read(reader, deployment, film)
                film.show(progress)
                if goal(progress):
                    film.end(progress.deployment)
                    return progress
                if film.seconds > timeout:
                    raise _timed_out(progress, timeout)
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        shows = "'rollway status --watch' shows it"
        printer(stderr=True).print(f"No longer waiting; what was asked for goes on, and {shows}.", soft_wrap=True)
        raise


def _timed_out(progress: Progress, timeout: float) -> WaitTimedOutError | WaitsForPersonError:
    view = progress.deployment
    if told := waits_for_person(view):
        return WaitsForPersonError(f"{view.name} {told} (waited {timeout:g} s)", deployment=view.name)
    why = progress.signs.missing_worker or view.said
    message = f"waited {timeout:g} s; {view.name} is {view.state}: {why}"
    return WaitTimedOutError(message, deployment=view.name, state=view.state)


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
    raise RolledBackError(message, rollout=rollout.id, outcome=rollout.outcome, reason=rollout.back_reason or "")


def settled(progress: Progress) -> bool:
    """Ready, complete, and nothing of another revision left; or without a revision, since nothing runs then.

    Raises DegradedError when scaling gave up or nothing has ever come up, and RolledBackError when the deployment was
    destroyed meanwhile.
    """
    view = progress.deployment
    if view.current_revision_id is None:
        return True
    failing, serving = progress.failing, any(route.is_serving for route in view.routes)
    if view.degraded_reason:
        cause = f"; a replica failed: {failing.cause}" if failing else ""
        raise DegradedError(f"{view.name} is degraded: {view.degraded_reason}{cause}", deployment=view.name)
    if failing and not failing.has_come_up and failing.in_a_row >= MOST_STARTS and not serving:
        message = f"{failing.revision} of {view.name} has never been healthy: {failing.in_a_row} starts failed in a row"
        more = f"the last one: {failing.cause}; mend what it runs, and apply it again"
        raise DegradedError(f"{message}, {more}", deployment=view.name)
    if view.lifecycle is Lifecycle.DESTROYED:
        message = f"{view.name} was destroyed meanwhile"
        raise RolledBackError(message, deployment=view.name)
    return is_settled(view.snapshot, view.now)


def gone_back(progress: Progress) -> bool:
    """The rollout that an undo began is completed, or the one that it turned back is where it came from.

    Raises what `rollout_completed` and `settled` raise.
    """
    rollout = progress.rollout
    return rollout_completed(progress) if rollout is not None and rollout.is_undo else settled(progress)


def destroyed(progress: Progress) -> bool:
    """The last replica of the deployment has gone."""
    return progress.deployment.lifecycle is Lifecycle.DESTROYED


def followed(reader: Reader, deployment: str, film: Film) -> Progress:
    """The deployment, and what its rollout has done since the film showed it last."""
    after = film.last_step if film.rollout_id else None
    return reader.view(Progress, f"{DEPLOYMENT}/progress", deployment, rollout=film.rollout_id, after=after)


def _read(reader: Reader, deployment: str, film: Film) -> Progress:
    """Waits through a restart of Postgres."""
    lost_at = time.monotonic()
    while True:
        try:
            return followed(reader, deployment, film)
        except UnreachableError:
            if time.monotonic() - lost_at > _LOST_PATIENCE:
                raise
            time.sleep(0.5)
