"""Classifies a decision: applies the limits to its verdict, and finds the next status in the handler's table."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, Protocol

from domain.model.decision import Decision, RouteChanges, Waits
from domain.model.deployment import Deployment, RouteCounts
from domain.model.policy import DeploymentPolicy, RolloutLimits
from domain.model.states import ROLLING_BACK, DeploymentLifecycleStatus, Lifecycle, Verdict, Word
from domain.strategies.converge import held_until, unproven
from domain.text.numbers import number_of

MAX_ATTEMPTS = 5
ERROR_PAUSE_SECONDS = 5
RETRY_SECONDS = 60
"""The pause between giving up a phase and its next try."""


class Deadline(NamedTuple):
    """A time limit. `what` completes the sentence "... has passed"."""

    at: datetime
    what: str


class Bounds(NamedTuple):
    """The limits of one phase: its deadlines, and how many new replicas failed and may fail.

    `last_failure`: why the last new replica failed.
    """

    deadlines: tuple[Deadline, ...] = ()
    failed_routes: int = 0
    failures_allowed: int | None = None
    last_failure: str | None = None


class Limited(Protocol):
    """The fields that a rollout's limits need. A Rollout and a row of `rollouts` have them."""

    @property
    def deadline(self) -> datetime:
        """End of the timeout."""

    @property
    def last_progress_at(self) -> datetime:
        """When an old route was last drained, or a new replica came up."""

    @property
    def failed_routes(self) -> int:
        """Failed new replicas."""

    @property
    def last_failure(self) -> str | None:
        """Why the last new replica failed."""


class Glimpse(NamedTuple):
    """A glance's view of a deployment in a rollout.

    `stands`: the rollout is paused or held, or its deadlines stood still until now.
    """

    rollout: Limited
    policy: DeploymentPolicy
    desired: int
    counts: RouteCounts
    stands: bool


def bounds_of(rollout: Limited, limits: RolloutLimits, desired: int) -> Bounds:
    deadlines: tuple[Deadline, ...] = (Deadline(rollout.deadline, _timeout(limits.timeout_seconds)),)
    if limits.progress_timeout_seconds is not None:
        ends = rollout.last_progress_at + timedelta(seconds=limits.progress_timeout_seconds)
        deadlines += (Deadline(ends, f"the {limits.progress_timeout_seconds:g} s allowed without progress"),)
    return Bounds(deadlines, rollout.failed_routes, limits.failures_allowed(desired), rollout.last_failure)


@lru_cache(maxsize=64)
def _timeout(seconds: float) -> str:
    return f"the timeout of {seconds:g} s"


def hardened(decision: Decision, bounds: Bounds, attempts: int, now: datetime) -> tuple[Verdict, str]:
    """The final verdict and its reason: the first line that applies. `attempts`: errors in a row.

    the decision is SUCCESS                         -> SUCCESS
    it waits for a person, or is held               -> its own verdict; its deadlines stand still
    a deadline has passed                           -> EXPIRED
    too many failed routes, or 5 errors in a row    -> GIVE_UP
    otherwise                                       -> its own verdict
    """
    if decision.verdict is Verdict.SUCCESS or decision.clock_stopped:
        return decision.verdict, decision.reason
    if (deadline := passed(bounds, now)) is not None:
        return Verdict.EXPIRED, f"{deadline.what} has passed; last: {decision.reason}{_failure(bounds)}"
    if bounds.failures_allowed is not None and bounds.failed_routes >= bounds.failures_allowed:
        why = f"{number_of(bounds.failed_routes, 'new replica')} failed, the limit is {bounds.failures_allowed}"
        return Verdict.GIVE_UP, f"{why}; last: {bounds.last_failure or decision.reason}"
    if attempts >= MAX_ATTEMPTS:
        return Verdict.GIVE_UP, f"{attempts} errors in a row; last: {decision.reason}"
    gives_up = decision.verdict is Verdict.GIVE_UP
    return decision.verdict, f"{decision.reason}{_failure(bounds)}" if gives_up else decision.reason


def passed(bounds: Bounds, now: datetime) -> Deadline | None:
    return next((deadline for deadline in bounds.deadlines if now >= deadline.at), None)


def _failure(bounds: Bounds) -> str:
    return f"; a new replica failed: {bounds.last_failure}" if bounds.last_failure else ""


class RevisionMove(Word):
    """The change of a deployment's revision pointers."""

    KEEP = "keep"
    SWAP = "swap"
    CLEAR = "clear"


@dataclass(frozen=True, slots=True)
class Transition:
    """The outcome of a verdict. `to` None: the deployment keeps its status.

    `degraded`: True marks the deployment as degraded until a later try; False removes the mark; None leaves it.
    """

    to: DeploymentLifecycleStatus | None = None
    revision: RevisionMove = RevisionMove.KEEP
    degraded: bool | None = None


STAY = Transition()


@dataclass(frozen=True, slots=True)
class DeploymentStatusTransitions:
    """The outcomes of all verdicts. A handler must give those that end its phase."""

    success: Transition
    expired: Transition
    give_up: Transition
    need_retry: Transition = STAY
    skipped: Transition = STAY
    error: Transition = STAY

    def of(self, verdict: Verdict) -> Transition:
        transition: Transition = getattr(self, verdict)
        return transition


@dataclass(frozen=True, slots=True)
class ClassifiedDecision:
    """A decision with its final verdict and the next status. `domain.cycle.effects` makes the next snapshot from it.

    `raw_verdict`: the verdict before the limits. `due_at`: when a handler must look again; None if only a change makes
    that necessary.
    """

    deployment: Deployment
    raw_verdict: Verdict
    verdict: Verdict
    reason: str
    changes: RouteChanges
    to: DeploymentLifecycleStatus
    revision: RevisionMove
    due_at: datetime | None
    attempts: int
    clock_stopped: bool
    desired_replicas: int
    degraded_reason: str | None
    retry_at: datetime | None
    waits: Waits | None = None
    harms: bool = False

    @property
    def changes_anything(self) -> bool:
        """Whether history and a step are written. A wait writes neither."""
        return self.verdict is not Verdict.SKIPPED or self.desired_replicas != self.deployment.desired_replicas

    @property
    def is_step(self) -> bool:
        """Whether it takes its rollout further, or back. Repairs during a hold or pause are no steps."""
        return self.changes_anything and not (self.deployment.stands_still and self.verdict is Verdict.NEED_RETRY)

    @property
    def awaited_verb(self) -> str | None:
        """The command that the rollout waits for; None if it waits for no person."""
        return self.waits.awaited_verb if self.waits and self.clock_stopped else None

    @property
    def stays(self) -> bool:
        """Whether the decision only moves routes: status, revisions and desired count of the deployment stay."""
        before = self.deployment
        same_place = self.revision is RevisionMove.KEEP and self.to == before.status
        same_count = self.desired_replicas == before.desired_replicas
        return same_place and same_count and self.degraded_reason == before.degraded_reason


class Wait(NamedTuple):
    """The record of a decision that waits: its reason, and when to look again."""

    reason: str
    due_at: datetime | None


def wait_of(decision: Decision, bounds: Bounds, now: datetime) -> Wait | None:
    """The wait that `classify` would find; None if a limit ends the rollout instead."""
    verdict, reason = hardened(decision, bounds, 0, now)
    return Wait(reason, _due_at(decision, verdict, 0, bounds, now)) if verdict is Verdict.SKIPPED else None


def classify(
    decision: Decision, deployment: Deployment, transitions: DeploymentStatusTransitions, bounds: Bounds, now: datetime
) -> ClassifiedDecision:
    """Apply the limits and find the next status.

    A limit that replaces the verdict drops its changes.
    """
    attempts = deployment.phase_attempts + 1 if decision.verdict is Verdict.ERROR else 0
    verdict, reason = hardened(decision, bounds, attempts, now)
    transition = transitions.of(verdict)
    to = deployment.status if transition.to is None else transition.to
    stays = transition.to is None or transition.to == deployment.status
    degraded_reason, retry_at = _degraded(deployment, transition, reason, now)
    due_next = None if to.lifecycle is Lifecycle.DESTROYED else now
    return ClassifiedDecision(
        deployment=deployment,
        raw_verdict=decision.verdict,
        verdict=verdict,
        reason=reason,
        changes=decision.changes if verdict is decision.verdict else RouteChanges(),
        to=to,
        revision=transition.revision,
        due_at=_due_at(decision, verdict, attempts, bounds, now) if stays else due_next,
        attempts=attempts if stays and verdict is not Verdict.GIVE_UP else 0,
        clock_stopped=decision.clock_stopped,
        desired_replicas=_desired(decision, deployment, to),
        degraded_reason=degraded_reason,
        retry_at=retry_at,
        waits=decision.waits if verdict is Verdict.SKIPPED or decision.clock_stopped else None,
        harms=decision.harms,
    )


def _degraded(
    deployment: Deployment, transition: Transition, reason: str, now: datetime
) -> tuple[str | None, datetime | None]:
    match transition.degraded:
        case None:
            return deployment.degraded_reason, deployment.retry_at
        case False:
            return unproven(_with_current(deployment, transition.revision), now) or (None, None)
        case True:
            soonest = now + timedelta(seconds=RETRY_SECONDS)
            return reason, max(soonest, held_until(deployment) or soonest)


def _with_current(deployment: Deployment, move: RevisionMove) -> Deployment:
    """The failures of a revision that leaves do not count against the next one."""
    if move is not RevisionMove.SWAP:
        return deployment
    return replace(deployment, current_revision_id=deployment.deploying_revision_id)


def _desired(decision: Decision, deployment: Deployment, to: DeploymentLifecycleStatus) -> int:
    """The desired count; on the way back the one from before."""
    if decision.desired_replicas is not None:
        return decision.desired_replicas
    if deployment.rollout is not None and to == ROLLING_BACK:
        return deployment.rollout.desired_at_start
    return deployment.desired_replicas


def _due_at(decision: Decision, verdict: Verdict, attempts: int, bounds: Bounds, now: datetime) -> datetime | None:
    """The next look at a deployment that keeps its status."""
    if verdict is Verdict.ERROR:
        return now + timedelta(seconds=ERROR_PAUSE_SECONDS * attempts)
    if verdict in (Verdict.EXPIRED, Verdict.GIVE_UP):
        return now + timedelta(seconds=RETRY_SECONDS)
    if decision.clock_stopped:
        return decision.recheck_at
    clocks = [deadline.at for deadline in bounds.deadlines]
    if decision.recheck_at is not None:
        clocks.append(decision.recheck_at)
    return min(clocks, default=None)
