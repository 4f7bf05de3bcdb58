"""Failing starts are tried again ever more slowly: one at a time, after 2, 4, 8 ... seconds, at most 10 minutes.

A replica that comes up ends the wait. But the pauses start from 2 s again only after it has been well for a minute:

    start  up  ends   pause 2 s   start  up  ends   pause 4 s   start  up: degraded  ends   pause 8 s   ...
    start  up  well for a minute: the mark goes, and the next failure is the first again
"""

from dataclasses import replace
from datetime import datetime, timedelta

from domain.model.decision import Decision, Inequality, Waits, WaitsFor, too_short
from domain.model.deployment import MOST_STARTS, Deployment, Route, StartFailures
from domain.model.states import RouteStatus, Verdict
from domain.text.numbers import doubling_pause, number_of

LONGEST_PAUSE_SECONDS = 600
PROVEN_SECONDS = 60
"""A replica that has been well for this time clears the failures before it."""
SHORT_LIVES = 2
"""Short lives in a row from which a deployment is called degraded, even while its replicas are well."""


def next_start_at(failures: StartFailures) -> datetime:
    return failures.last_at + doubling_pause(failures.in_a_row, first=2, longest=LONGEST_PAUSE_SECONDS)


def held_until(deployment: Deployment) -> datetime | None:
    """When a start of the current revision may be tried; None if none is held back."""
    failures = deployment.start_failures
    if failures is None or failures.revision_id != deployment.current_revision_id or failures.came_up_at is not None:
        return None
    return next_start_at(failures)


def nowhere_to_go(deployment: Deployment) -> Decision | None:
    """End a way back that has no replica left while starts fail."""
    failures = deployment.start_failures
    if failures is None or failures.in_a_row < MOST_STARTS:
        return None
    if deployment.active_routes or held_until(deployment) is None:
        return None
    return Decision(Verdict.EXPIRED, f"nothing to go back to: {failures.in_a_row} starts of it failed in a row")


def is_proven(failures: StartFailures, now: datetime) -> bool:
    """Whether the replica that came up after the last failure has been well for long enough."""
    return failures.came_up_at is not None and now >= proven_at(failures.came_up_at)


def unproven(deployment: Deployment, now: datetime) -> tuple[str, datetime] | None:
    """Why a deployment with all its replicas is called degraded, and since when; None if it is not.

    It continues to replace what it lacks; `proven_at` ends this state.
    """
    failures = deployment.start_failures
    if failures is None or failures.revision_id != deployment.current_revision_id or failures.came_up_at is None:
        return None
    if failures.short_lives < SHORT_LIVES or is_proven(failures, now):
        return None
    often = f"replicas failed {failures.short_lives} times in a row soon after they had come up"
    return f"{often}; the last one has not been well for {PROVEN_SECONDS} s yet", failures.came_up_at


def proven_at(came_up_at: datetime) -> datetime:
    return came_up_at + timedelta(seconds=PROVEN_SECONDS)


def hold_back(decision: Decision, deployment: Deployment, now: datetime) -> Decision:
    """Limit creations of a failing revision: none while one starts, then one."""
    failures = deployment.start_failures
    if failures is None or failures.in_a_row == 0 or failures.came_up_at is not None:
        return decision
    creations = [spec for spec in decision.changes.rollout_specs if spec.revision_id == failures.revision_id]
    if not creations:
        return decision
    others = tuple(spec for spec in decision.changes.rollout_specs if spec.revision_id != failures.revision_id)
    start_at, tried_as = next_start_at(failures), (RouteStatus.PROVISIONING, failures.revision_id)
    starting = tuple(route for route in deployment.routes if (route.status, route.revision_id) == tried_as)
    failed = f"{number_of(failures.in_a_row, 'start')} failed{' in a row' if failures.in_a_row > 1 else ''}"
    if now >= start_at and not starting:
        changes = replace(decision.changes, rollout_specs=(*others, replace(creations[0], count=1)))
        reason = f"{decision.reason}; {failed}, so only 1 is tried" if creations[0].count > 1 else decision.reason
        return replace(decision, changes=changes, reason=reason)
    tried = "one is being tried" if starting else f"the next one is tried in {(start_at - now).total_seconds():.0f} s"
    why = f"{failed}; {tried}"
    later = min((at for at in (decision.recheck_at, start_at) if at and at > now), default=None)
    changes = replace(decision.changes, rollout_specs=others)
    if not changes:
        waits = _waits(why, failures, starting, now)
        return Decision.wait(waits, later, clock_stopped=decision.clock_stopped)
    goes_on_at_once = decision.recheck_at is not None and decision.recheck_at <= now
    recheck_at = now if goes_on_at_once else later
    return replace(decision, changes=changes, reason=f"{decision.reason}; {why}", recheck_at=recheck_at)


def _waits(words: str, failures: StartFailures, starting: tuple[Route, ...], now: datetime) -> Waits:
    """Wait for the replica that starts, or for the pause after the last failure."""
    if tried := len(starting):
        alone = Inequality(tried + 1, ">", 1, f"{tried} being tried + 1 > 1 at a time")
        return Waits(WaitsFor.ROUTE, words, starting, (alone,))
    pause = too_short(now - failures.last_at, next_start_at(failures) - failures.last_at, "after the last failure")
    return Waits(WaitsFor.TIME, words, blocked=(pause,))
