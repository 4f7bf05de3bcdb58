"""The steering of a rollout: begin it, turn it back, end its pause, pass its weights, resize it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from domain.cycle.evaluator import EVALUATOR
from domain.judge.judge import Judging
from domain.model.canary import Sums
from domain.model.deployment import Deployment, Rollout
from domain.model.policy import DeploymentPolicy
from domain.model.states import PREPARING, PROVISIONING, ROLLING_BACK
from domain.strategies.budget import Budget
from domain.text.errors import RollwayError, WrongStateError


class NoRolloutError(RollwayError):
    """The command steers a rollout, and none is running."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The beginning of a rollout. `desired`: the size that comes with the revision, if one does.

    `is_undo`: it moves the traffic as soon as it can, whatever its policy waits for. `prepares`: hosts are prepared
    for the revision first.
    """

    rollout_id: UUID
    revision_id: UUID
    policy: DeploymentPolicy
    desired: int | None = None
    is_undo: bool = False
    prepares: bool = False


def begin_rollout(deployment: Deployment, begin: Begin, now: datetime) -> Deployment:
    """The deployment with a new rollout, which has its own clocks and its own copy of the policy.

    A size that comes with a revision belongs to that revision. So a rollout that takes the place of another begins with
    the size from before the other one:

        3 replicas → v2 with 5 → superseded by v3: v3 gets 3, and the way back from v3 leads to 3
    """
    if deployment.current_revision_id is None:
        raise ValueError(f"{deployment.name} has no revision that a rollout could begin from")
    before = deployment.rollout.desired_at_start if deployment.rollout else deployment.desired_replicas
    policy = EVALUATOR.strategy_of(begin.policy).undoing(begin.policy) if begin.is_undo else begin.policy
    rollout = Rollout(
        id=begin.rollout_id,
        from_revision_id=deployment.current_revision_id,
        to_revision_id=begin.revision_id,
        policy=policy,
        started_at=now,
        last_progress_at=now,
        deadline=now + timedelta(seconds=begin.policy.limits.timeout_seconds),
        desired_at_start=before,
        desired_with_revision=begin.desired,
        promote_requested=begin.is_undo,
        is_undo=begin.is_undo,
    )
    begins = replace(
        deployment,
        status=PREPARING if begin.prepares else PROVISIONING,
        deploying_revision_id=begin.revision_id,
        rollout=rollout,
        desired_replicas=before if begin.desired is None else begin.desired,
        phase_started_at=now,
        phase_attempts=0,
        paused_at=None,
        degraded_reason=None,
        retry_at=None,
    )
    canary = None if begin.is_undo else EVALUATOR.strategy_of(begin.policy).begins_with(begins, begin.policy.spec)
    return replace(begins, rollout=replace(rollout, canary=canary))


def turned_back(deployment: Deployment, now: datetime, *, at_once: bool = False) -> Deployment:
    """The deployment on the way back to the revision and the size from before the rollout; its clocks run.

    `at_once`: all requests leave the new side now, whatever the old one can answer.
    """
    rollout = rollout_of(deployment, "turn back")
    return replace(
        deployment,
        status=ROLLING_BACK,
        desired_replicas=rollout.desired_at_start,
        paused_at=None,
        phase_attempts=0,
        phase_started_at=deployment.phase_started_at if deployment.status == ROLLING_BACK else now,
        rollout=EVALUATOR.sent_back(deployment, replace(rollout, clock_stopped_at=None), at_once=at_once),
    )


def past_all_weights(rollout: Rollout) -> Rollout | None:
    """The rollout once the last weight of its canary has passed; None where no weight is left to pass."""
    canary = rollout.canary and rollout.canary.with_weight(None)
    return replace(rollout, canary=canary, promote_requested=False) if canary != rollout.canary else None


def with_evidence(rollout: Rollout, evidence: Sums | None) -> Rollout:
    """The rollout with new evidence for its canary's judge."""
    if rollout.canary is None or evidence is None:
        return rollout
    return replace(rollout, canary=replace(rollout.canary, evidence=evidence))


def judging_of(policy: DeploymentPolicy) -> Judging | None:
    """The judge's settings of a rollout with this policy; None without a judge."""
    return EVALUATOR.strategy_of(policy).judging(policy.spec)


def is_judged(rollout: Rollout) -> bool:
    """Whether a judge needs the proxies' counts, or copies of requests are answered."""
    judging = judging_of(rollout.policy)
    return judging is not None and judging.is_on(rollout.canary)


def wait_in_words(deployment: Deployment, now: datetime) -> str:
    """The rollout's wait at its next look, in words; empty if it continues."""
    wait = EVALUATOR.wait_of(deployment, now)
    return wait.reason if wait else ""


def unpaused(deployment: Deployment, now: datetime) -> Deployment:
    """End the pause. The time of a canary's weight continues from where it stopped."""
    rollout, paused_at = deployment.rollout, deployment.paused_at
    canary = rollout.canary if rollout else None
    if rollout is None or paused_at is None or canary is None:
        return replace(deployment, paused_at=None)
    return replace(deployment, paused_at=None, rollout=replace(rollout, canary=canary.paused(paused_at, now)))


def weight_known(deployment: Deployment, now: datetime) -> Deployment:
    """Every live proxy has acknowledged a table with the weight of its canary; nothing to know elsewhere."""
    rollout = deployment.rollout
    canary = rollout.canary if rollout else None
    if rollout is None or canary is None or (acknowledged := canary.with_weight_known(now)) is canary:
        return deployment
    return replace(deployment, rollout=replace(rollout, canary=acknowledged))


def rollout_of(deployment: Deployment, verb: str) -> Rollout:
    """The running rollout. Raises NoRolloutError, which says that there is none to `verb`."""
    if deployment.rollout is None:
        raise NoRolloutError(
            f"{deployment.name} is {deployment.status}: there is no rollout to {verb}", deployment=deployment.name
        )
    return deployment.rollout


def guard_of(deployment: Deployment) -> Budget:
    """The budget that Postgres enforces: the widest of the ways there and back."""
    rollout = rollout_of(deployment, "guard")
    sizes = (rollout.desired_at_start, rollout.desired_with_revision)
    budgets = [EVALUATOR.budget(replace(deployment, desired_replicas=size)) for size in sizes if size is not None]
    return replace(budgets[0], ceiling=max(b.ceiling for b in budgets), keep=min(b.keep for b in budgets))


def most_at_once(deployment: Deployment) -> int:
    """More replicas than these no decision creates."""
    ceiling = guard_of(deployment).ceiling if deployment.rollout else 0
    return max(deployment.desired_replicas, ceiling)


def resized(deployment: Deployment, desired: int) -> Rollout:
    """The rollout for a size that holds for both revisions, on either way."""
    return replace(with_failures_allowed(deployment, desired), desired_at_start=desired, desired_with_revision=None)


def resized_with_revision(deployment: Deployment, desired: int) -> Rollout:
    """The rollout for a size of its new revision, which leaves with that. Raises NoRolloutError and WrongStateError."""
    rollout_of(deployment, "resize")
    if deployment.status == ROLLING_BACK:
        message = f"{deployment.name} is rolling back: the size of the new revision leaves with it"
        raise WrongStateError(message, deployment=deployment.name)
    return replace(with_failures_allowed(deployment, desired), desired_with_revision=desired)


def size_again(deployment: Deployment, with_revision: int | None, before: int) -> int | None:
    """The size for another try of a revision: the size that came with it, unless a person has scaled since.

    3 replicas → v2 with 5, rolled back to 3 → retry: 5; → scale 8, retry: 8
    """
    has_scaled = deployment.rollout is None and deployment.desired_replicas != before
    return None if has_scaled else with_revision


def with_failures_allowed(deployment: Deployment, desired: int) -> Rollout:
    """The rollout for another size. A smaller one allows no fewer failures: they may have happened already.

    n=40, 4 of 20 failed  →  scale 3: 4 of 20
    """
    rollout = _weight_restarted(rollout_of(deployment, "resize"), deployment.desired_replicas, desired)
    limits = rollout.policy.limits
    allowed = limits.failures_allowed(deployment.desired_replicas)
    if limits.failures_allowed(desired) >= allowed:
        return rollout
    fixed = limits.model_copy(update={"failure_budget": allowed})
    return replace(rollout, policy=replace(rollout.policy, limits=fixed))


def _weight_restarted(rollout: Rollout, before: int, desired: int) -> Rollout:
    """Begin the time of a canary's weight again where there were no replicas: only now can it answer."""
    canary = rollout.canary
    if canary is None or canary.weight is None or before or not desired:
        return rollout
    return replace(rollout, canary=canary.at(canary.stage, canary.weight))
