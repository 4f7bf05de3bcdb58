"""What must hold in every state, after every command and in the end. Each law is the sentence that is printed."""

import json
from datetime import datetime
from functools import cache

from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, Rollout
from domain.model.policy import DeploymentPolicy
from domain.model.states import Lifecycle, RolloutOutcome, TrafficStatus
from domain.steering.command_effect import Effect
from domain.strategies.builtin import stored_policy
from tests.support.pictures.pictures import DESTROYED, READY, ROLLING_BACK
from tools.prove.laws.requests import broken_by_requests
from tools.prove.laws.wishes import broken_by_word
from tools.prove.state import State


def broken_by_waiting(deployment: Deployment, at: datetime) -> str | None:
    """At a moment for which no look was asked there is nothing to do: else it would have to be asked for."""
    if deployment.status == DESTROYED:
        return None
    decision = cycle(deployment, at)
    if decision.changes_anything:
        return f"nobody looks when time alone allows the next step: {decision.reason}"
    return None


def broken_by_row(deployment: Deployment, now: datetime) -> str | None:
    """Of the row alone, whatever led to it."""
    rollout, deploying = deployment.rollout, deployment.status.lifecycle is Lifecycle.DEPLOYING
    signs = (rollout is not None, deployment.deploying_revision_id is not None, deployment.status.sub_step is not None)
    if any(sign != deploying for sign in signs):
        return "deploying means: a rollout, a deploying revision and a sub-step"
    if deployment.status == DESTROYED and deployment.routes:
        return "what is destroyed has no replicas"
    if deployment.paused_at is not None and (rollout is None or rollout.clock_stopped_at is None):
        return "what is paused is a rollout, and timeout paused"
    if (deployment.degraded_reason is None) != (deployment.retry_at is None):
        return "what was given up is tried again later"
    if any(route.parked_until is not None and route.traffic is TrafficStatus.ACTIVE for route in deployment.routes):
        return "what is parked is out of traffic"
    return None if rollout is None else _broken_by_rollout(deployment, rollout, now) or broken_by_requests(deployment)


def _broken_by_rollout(deployment: Deployment, rollout: Rollout, now: datetime) -> str | None:
    known_at = rollout.canary.weight_known_at if rollout.canary else None
    past = (rollout.started_at, rollout.last_progress_at, rollout.clock_stopped_at, known_at, deployment.paused_at)
    if any(at is not None and at > now for at in past):
        return "nothing that has happened lies in the future: no progress, no pause, no weight that proxies know"
    if not _is_read_back(rollout.policy):
        return "what is begun can be read back as it is"
    if rollout.from_revision_id != deployment.current_revision_id:
        return "a rollout leads away from the current revision"
    if rollout.to_revision_id != deployment.deploying_revision_id or rollout.to_revision_id == rollout.from_revision_id:
        return "a rollout leads to the deploying revision"
    if deployment.status == ROLLING_BACK and deployment.desired_replicas != rollout.desired_at_start:
        return "the way back leads to the size from before"
    return None


@cache
def _is_read_back(policy: DeploymentPolicy) -> bool:
    """By whoever loads the rollout: what is stored of its policy is JSON."""
    return stored_policy(json.loads(json.dumps(policy.as_json()))) == policy


def broken_by_command(state: State, name: str, steered: Effect) -> str | None:
    """What a command leaves behind."""
    before, deployment = state.deployment.rollout, steered.deployment
    after = deployment.rollout
    replaced = before is not None and (after is None or after.id != before.id)
    if replaced != (steered.ended is not None):
        return "a rollout that ends has an outcome, and only that"
    retried = name == "retry" and after is not None and (before is None or after.id != before.id)
    if retried and after and after.desired_with_revision != _size_again(state):
        return "a retry begins with the size that came with the rollout, unless somebody has scaled since"
    if after is not None and deployment.status != ROLLING_BACK and _is_to_be_undo(state, name) and not after.is_undo:
        return "what leads out of trouble is an undo: it waits for no weight, no person, no freeze and no group"
    superseded = before and after and steered.ended is RolloutOutcome.SUPERSEDED
    if superseded and before and after and after.desired_at_start != before.desired_at_start:
        return "a rollout that takes the place of another begins with the size from before it"
    heard = next(broken_by_word(state.deployment, name, steered.deployment), None)
    return heard or broken_by_row(steered.deployment, state.now)


def _size_again(state: State) -> int | None:
    rollout, last = state.deployment.rollout, state.rolled_back
    if rollout is not None:
        return rollout.desired_with_revision
    return last.size if last and last.before == state.deployment.desired_replicas else None


def _is_to_be_undo(state: State, name: str) -> bool:
    """By its name, and a retry by what it tries again."""
    last = state.deployment.rollout or state.rolled_back
    return name.startswith("undo") or (name == "retry" and last is not None and last.is_undo)


def rests(state: State) -> bool:
    """Ready, complete and alone, on no drained host, with nothing to come; or destroyed."""
    deployment = state.seen
    if deployment.status == DESTROYED:
        return not deployment.routes
    whole = [(deployment.current_revision_id, True, False)] * deployment.desired_replicas
    return (
        deployment.status == READY
        and state.due_at is None
        and deployment.degraded_reason is None
        and [(route.revision_id, route.is_serving, route.is_misplaced) for route in deployment.routes] == whole
    )
