"""What a handler is: a declaration, one pure `decide()`, and the same `execute()` for all."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, Self

from domain.changes import Decision
from domain.counts import RouteCounts
from domain.evaluator import contained
from domain.events import DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model import Deployment, DeploymentLifecycleStatus, Verdict
from domain.rollout import with_clock_running
from domain.transitions import ClassifiedDecision, DeploymentStatusTransitions, Limits, classify


@dataclass(frozen=True, slots=True)
class DeploymentExecutionResult:
    """What a batch came to, by what each deployment did: ended its phase, moved, waits, or went wrong."""

    successes: tuple[ClassifiedDecision, ...] = ()
    need_retry: tuple[ClassifiedDecision, ...] = ()
    skipped: tuple[ClassifiedDecision, ...] = ()
    errors: tuple[ClassifiedDecision, ...] = ()

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.successes + other.successes,
            self.need_retry + other.need_retry,
            self.skipped + other.skipped,
            self.errors + other.errors,
        )

    @classmethod
    def gather(cls, classified: Iterable[ClassifiedDecision]) -> Self:
        """Sort by verdict; EXPIRED and GIVE_UP go with the errors."""
        successes: list[ClassifiedDecision] = []
        need_retry: list[ClassifiedDecision] = []
        skipped: list[ClassifiedDecision] = []
        errors: list[ClassifiedDecision] = []
        for one in classified:
            match one.verdict:
                case Verdict.SUCCESS:
                    successes.append(one)
                case Verdict.NEED_RETRY:
                    need_retry.append(one)
                case Verdict.SKIPPED:
                    skipped.append(one)
                case Verdict.ERROR | Verdict.EXPIRED | Verdict.GIVE_UP:
                    errors.append(one)
        return cls(tuple(successes), tuple(need_retry), tuple(skipped), tuple(errors))

    @property
    def everything(self) -> tuple[ClassifiedDecision, ...]:
        """All of the batch, group by group: not in the order in which the deployments came."""
        return self.successes + self.need_retry + self.skipped + self.errors


class DeploymentHandler(ABC):
    """One look at deployments in its target statuses. Everything about it stands in its own file.

    `lock_id`: workers that run handlers of one lock id share its slots; None takes no lock.
    """

    name: ClassVar[str]
    event: ClassVar[DoDeploymentLifecycleEvent]
    cadence: ClassVar[DeploymentTaskSpec]
    lock_id: ClassVar[str | None]
    targets: ClassVar[frozenset[DeploymentLifecycleStatus]]
    transitions: ClassVar[DeploymentStatusTransitions]

    @abstractmethod
    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        """What one deployment needs next."""

    def limits(self, deployment: Deployment) -> Limits:  # noqa: ARG002  (most phases have no limit)
        """The deadlines and the failures allowed of this phase."""
        return Limits()

    def glance(self, deployment: Deployment, counts: RouteCounts, now: datetime) -> ClassifiedDecision | None:  # noqa: ARG002
        """Decide from counts, for a `deployment` whose routes are not loaded.

        None if the routes are needed: to decide, or because more than a wait comes out, which goes on record with them.
        """
        return None

    def execute(self, deployments: Iterable[Deployment], now: datetime) -> DeploymentExecutionResult:
        """Decide and classify a batch."""
        batch = tuple(deployments)
        summary = contained(self.decide, batch, now)
        return DeploymentExecutionResult.gather(
            self.classified(
                summary.assignments.get(deployment.id) or Decision(Verdict.ERROR, summary.errors[deployment.id]),
                deployment,
                now,
            )
            for deployment in batch
        )

    def classified(self, decision: Decision, deployment: Deployment, now: datetime) -> ClassifiedDecision:
        """Hold the decision to this phase's limits; a clock that stood still goes on first, so its deadlines move."""
        rollout, limited = deployment.rollout, deployment
        if rollout is not None and rollout.clock_stopped_at is not None:
            limited = replace(deployment, rollout=with_clock_running(rollout, now))
        return classify(decision, deployment, self.transitions, self.limits(limited), now)
