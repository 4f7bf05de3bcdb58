"""Where a verdict leads: clocks and bounds harden it, the handler's table gives the next status."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from domain.model.bounds import Bounds, hardened
from domain.model.changes import Decision, RouteChanges
from domain.model.deployment import Deployment, DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle, Verdict
from domain.model.waits import Waits, WaitsFor
from domain.strategies.backoff import held_until, unproven

ERROR_PAUSE_SECONDS = 5
RETRY_SECONDS = 60
"""How long after giving up a phase is tried again."""


class RevisionMove(StrEnum):
    """What happens to the deployment's revision pointers."""

    KEEP = "keep"
    SWAP = "swap"
    CLEAR = "clear"


@dataclass(frozen=True, slots=True)
class Transition:
    """`to` None: the deployment stays where it is.

    `degraded`: True says that it is, and it is tried again after a pause; False that it is no longer; None leaves it.
    """

    to: DeploymentLifecycleStatus | None = None
    revision: RevisionMove = RevisionMove.KEEP
    degraded: bool | None = None


STAY = Transition()


@dataclass(frozen=True, slots=True)
class DeploymentStatusTransitions:
    """Every verdict leads somewhere; a handler must say where those lead that end its phase."""

    success: Transition
    expired: Transition
    give_up: Transition
    need_retry: Transition = STAY
    skipped: Transition = STAY
    error: Transition = STAY

    def of(self, verdict: Verdict) -> Transition:
        """Where this verdict leads: the field that is called as it is."""
        transition: Transition = getattr(self, verdict)
        return transition


@dataclass(frozen=True, slots=True)
class ClassifiedDecision:
    """A decision, hardened, with where it leads; `domain.cycle.after` says what it leaves behind.

    `attempts`: errors in a row. `due_at`: when this deployment must be looked at again; None when only a change can
    make that necessary. `clock_stopped`: the rollout waits for a person, or is held. `waits`: what it waits for.
    """

    deployment: Deployment
    found: Verdict
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

    @property
    def changes_anything(self) -> bool:
        """False for a wait: it writes no history and no step."""
        return self.verdict is not Verdict.SKIPPED or self.desired_replicas != self.deployment.desired_replicas

    @property
    def awaited_verb(self) -> str | None:
        """What a person must type before the rollout goes on; None where nobody is waited for."""
        waits = self.waits if self.clock_stopped else None
        return waits.verb if waits is not None and waits.kind is WaitsFor.PERSON else None

    @property
    def stays(self) -> bool:
        """True for one step of many: it moves routes, and of the deployment no more than its errors in a row."""
        before = self.deployment
        same_place = self.revision is RevisionMove.KEEP and self.to == before.status
        same_count = self.desired_replicas == before.desired_replicas
        return same_place and same_count and self.degraded_reason == before.degraded_reason


class Wait(NamedTuple):
    """A decision that changes nothing, as far as it is written: why, and when to look again."""

    reason: str
    due_at: datetime | None


def wait_of(decision: Decision, bounds: Bounds, now: datetime) -> Wait | None:
    """The wait that `classify` would make of the decision; None where a limit ends the rollout instead of a wait."""
    verdict, reason = hardened(decision, bounds, 0, now)
    return Wait(reason, _due_at(decision, verdict, 0, bounds, now)) if verdict is Verdict.SKIPPED else None


def classify(
    decision: Decision, deployment: Deployment, transitions: DeploymentStatusTransitions, bounds: Bounds, now: datetime
) -> ClassifiedDecision:
    """The final verdict and what follows from it. A hardened verdict applies none of the decision's changes."""
    attempts = deployment.phase_attempts + 1 if decision.verdict is Verdict.ERROR else 0
    verdict, reason = hardened(decision, bounds, attempts, now)
    transition = transitions.of(verdict)
    to = deployment.status if transition.to is None else transition.to
    stays = transition.to is None or transition.to == deployment.status
    degraded_reason, retry_at = _degraded(deployment, transition, reason, now)
    return ClassifiedDecision(
        deployment=deployment,
        found=decision.verdict,
        verdict=verdict,
        reason=reason,
        changes=decision.changes if verdict is decision.verdict else RouteChanges(),
        to=to,
        revision=transition.revision,
        due_at=_due_at(decision, verdict, attempts, bounds, now) if stays else _due_next(to, now),
        attempts=attempts if stays and verdict is not Verdict.GIVE_UP else 0,
        clock_stopped=decision.waits_for_person,
        desired_replicas=_desired(decision, deployment, to),
        degraded_reason=degraded_reason,
        retry_at=retry_at,
        waits=decision.waits if verdict is Verdict.SKIPPED else None,
    )


def _degraded(
    deployment: Deployment, transition: Transition, reason: str, now: datetime
) -> tuple[str | None, datetime | None]:
    match transition.degraded:
        case None:
            return deployment.degraded_reason, deployment.retry_at
        case False:
            return unproven(deployment, now) or (None, None)
        case True:
            soonest = now + timedelta(seconds=RETRY_SECONDS)
            return reason, max(soonest, held_until(deployment) or soonest)


def _desired(decision: Decision, deployment: Deployment, to: DeploymentLifecycleStatus) -> int:
    """A rollout that turns back wants the size from before it."""
    if decision.desired_replicas is not None:
        return decision.desired_replicas
    if deployment.rollout is not None and to.sub_step is DeploymentSubStep.ROLLING_BACK:
        return deployment.rollout.desired_at_start
    return deployment.desired_replicas


def _due_next(to: DeploymentLifecycleStatus, now: datetime) -> datetime | None:
    """Where it goes it is looked at once; nobody looks at what is destroyed."""
    return None if to.lifecycle is Lifecycle.DESTROYED else now


def _due_at(decision: Decision, verdict: Verdict, attempts: int, bounds: Bounds, now: datetime) -> datetime | None:
    """When a deployment that stays where it is must be looked at again."""
    if verdict is Verdict.ERROR:
        return now + timedelta(seconds=ERROR_PAUSE_SECONDS * attempts)
    if verdict in (Verdict.EXPIRED, Verdict.GIVE_UP):
        return now + timedelta(seconds=RETRY_SECONDS)
    if decision.waits_for_person:
        return decision.recheck_at
    clocks = [deadline.at for deadline in bounds.deadlines]
    if decision.recheck_at is not None:
        clocks.append(decision.recheck_at)
    return min(clocks, default=None)
