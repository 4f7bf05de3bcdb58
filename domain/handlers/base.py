"""What a handler is: a declaration, one pure `decide()`, and the same `execute()` for all."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from domain.changes import Decision
from domain.evaluator import StrategyEvaluationSummary, contained
from domain.events import DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model import Deployment, DeploymentLifecycleStatus, Verdict
from domain.transitions import ClassifiedDecision, DeploymentStatusTransitions, Limits, classify


@dataclass(frozen=True, slots=True)
class DeploymentExecutionResult:
    """What a batch came to, by what each deployment did: ended its phase, moved, waits, or went wrong."""

    successes: tuple[ClassifiedDecision, ...]
    need_retry: tuple[ClassifiedDecision, ...]
    skipped: tuple[ClassifiedDecision, ...]
    errors: tuple[ClassifiedDecision, ...]

    @classmethod
    def gather(cls, classified: Iterable[ClassifiedDecision]) -> Self:
        """Sort by verdict; EXPIRED and GIVE_UP go with the errors."""
        everything = tuple(classified)
        return cls(
            successes=tuple(one for one in everything if one.verdict is Verdict.SUCCESS),
            need_retry=tuple(one for one in everything if one.verdict is Verdict.NEED_RETRY),
            skipped=tuple(one for one in everything if one.verdict is Verdict.SKIPPED),
            errors=tuple(one for one in everything if one.verdict in (Verdict.ERROR, Verdict.EXPIRED, Verdict.GIVE_UP)),
        )

    @property
    def everything(self) -> tuple[ClassifiedDecision, ...]:
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

    def evaluate(self, deployments: Iterable[Deployment], now: datetime) -> StrategyEvaluationSummary:
        """`decide` for each, one that raises being an error of its own."""
        return contained(self.decide, deployments, now)

    def execute(self, deployments: Iterable[Deployment], now: datetime) -> DeploymentExecutionResult:
        """Decide and classify a batch."""
        batch = tuple(deployments)
        summary = self.evaluate(batch, now)
        return DeploymentExecutionResult.gather(
            classify(
                summary.assignments.get(one.id) or Decision(Verdict.ERROR, summary.errors[one.id]),
                one,
                self.transitions,
                self.limits(one),
                now,
            )
            for one in batch
        )
