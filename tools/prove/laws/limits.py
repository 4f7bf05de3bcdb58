"""When a rollout turns back: as docs/reference/file.md says of its limits, with sums of its own."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from domain.cycle.transitions import ClassifiedDecision
from domain.model.deployment import Rollout
from domain.model.policy import DeploymentPolicy
from domain.model.states import Verdict
from domain.strategies.builtin import parse_policy
from tests.support.pictures.pictures import PROVISIONING, ROLLING_BACK
from tools.prove.state import State


def broken_by_limits(state: State, decision: ClassifiedDecision) -> Iterator[str]:
    """Whoever waits for a person, is held, or is complete now, is not sent back; others are by the first limit."""
    before = decision.deployment
    rollout = before.rollout
    if rollout is None or before.status != PROVISIONING:
        return
    ends = _ends(rollout, state.now)
    unanswered = rollout.policy.limits.unanswered
    if unanswered and rollout.unanswered and rollout.unanswered >= unanswered and not before.paused_at:
        if decision.to != ROLLING_BACK:
            yield "a new revision that answers nobody ends a rollout"
        return
    over = min(ends) <= state.now or rollout.failed_routes >= failures_allowed(rollout, before.desired_replicas)
    free = decision.raw_verdict is Verdict.SUCCESS or decision.clock_stopped
    turns = decision.to == ROLLING_BACK
    if over and not free and not turns:
        yield "a limit that has passed ends a rollout"
    if turns and not over and decision.raw_verdict is not Verdict.GIVE_UP:
        yield "a rollout turns back by its limits alone, and time that a person took is not held against it"
    waits = decision.verdict is Verdict.SKIPPED and not decision.clock_stopped
    if waits and (decision.due_at is None or decision.due_at > min(ends)):
        yield "a rollout is looked at when its first limit passes"


def _ends(rollout: Rollout, now: datetime) -> list[datetime]:
    """Both limits, moved by the time for which the clocks have stood still."""
    asleep = now - rollout.clock_stopped_at if rollout.clock_stopped_at else timedelta()
    ends, limits = [rollout.deadline + asleep], rollout.policy.limits
    if limits.progress_timeout_seconds is not None:
        ends.append(min(now, rollout.last_progress_at + asleep) + timedelta(seconds=limits.progress_timeout_seconds))
    return ends


def failures_allowed(rollout: Rollout, n: int) -> int:
    """failure_budget. Left out: min(200, max(3, ceil(n / 2)))."""
    return rollout.policy.limits.failure_budget or min(200, max(3, (n + 1) // 2))


def of_undo(policy: DeploymentPolicy) -> DeploymentPolicy:
    """What it goes back to replaces the rest once it is healthy, with as many beside it as undo_max_surge says.

    The undo of a canary has no steps: it is a rolling update.
    """
    if policy.strategy in ("blue_green", "recreate"):
        return policy
    spec: dict[str, Any] = policy.spec.model_dump()
    rolled = ("max_unavailable", "pacing", "count_stopping", "undo_max_surge", "sleep_seconds")
    surge = spec["max_surge"] if spec["undo_max_surge"] is None else spec["undo_max_surge"]
    its = {**{name: spec[name] for name in rolled}, "max_surge": surge}
    return replace(parse_policy({"strategy": "rolling_update", "spec": its}), limits=policy.limits)
