"""Failing starts are tried again ever more slowly: one at a time, after 2, 4, 8 ... seconds, at most 10 minutes."""

from dataclasses import replace
from datetime import datetime, timedelta

from domain.changes import Decision, RouteChanges
from domain.model import Deployment, RouteStatus, StartFailures, Verdict

LONGEST_PAUSE_SECONDS = 600
_HIGHEST_EXPONENT = 10


def next_start_at(failures: StartFailures) -> datetime:
    """When the next start may be tried: `last_at` + min(600, 2 ** failures in a row) seconds."""
    pause = min(LONGEST_PAUSE_SECONDS, 2 ** min(failures.in_a_row, _HIGHEST_EXPONENT))
    return failures.last_at + timedelta(seconds=pause)


def hold_back(decision: Decision, deployment: Deployment, now: datetime) -> Decision:
    """The decision with as few creations as the failures of that revision allow: none while one starts, then one."""
    failures = deployment.start_failures
    if failures is None or failures.in_a_row == 0:
        return decision
    wanted = [spec for spec in decision.changes.rollout_specs if spec.revision_id == failures.revision_id]
    if not wanted:
        return decision
    others = tuple(spec for spec in decision.changes.rollout_specs if spec.revision_id != failures.revision_id)
    start_at, starting = next_start_at(failures), _is_starting(deployment, failures)
    if now >= start_at and not starting:
        changes = replace(decision.changes, rollout_specs=(*others, replace(wanted[0], count=1)))
        return replace(decision, changes=changes)
    tried = "one is being tried" if starting else f"the next one is tried in {(start_at - now).total_seconds():.0f} s"
    why = f"{failures.in_a_row} starts failed in a row; {tried}"
    later = min((at for at in (decision.recheck_at, start_at) if at and at > now), default=None)
    changes = replace(decision.changes, rollout_specs=others)
    if not changes:
        return replace(
            decision, verdict=Verdict.SKIPPED, changes=RouteChanges(), reason=f"waiting: {why}", recheck_at=later
        )
    goes_on_at_once = decision.recheck_at is not None and decision.recheck_at <= now
    recheck_at = now if goes_on_at_once else later
    return replace(decision, changes=changes, reason=f"{decision.reason}; {why}", recheck_at=recheck_at)


def _is_starting(deployment: Deployment, failures: StartFailures) -> bool:
    return any(
        route.status is RouteStatus.PROVISIONING and route.revision_id == failures.revision_id
        for route in deployment.routes
    )
