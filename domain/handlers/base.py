"""A handler declares which deployments it looks at, and decides about each; `execute()` is the same for all."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, Self

from domain.cycle.effects import with_clock_running
from domain.cycle.evaluator import contained
from domain.cycle.transitions import Bounds, ClassifiedDecision, DeploymentStatusTransitions, Glimpse, Wait, classify
from domain.model.decision import Decision
from domain.model.deployment import Deployment
from domain.model.lifecycle_events import DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model.states import DeploymentLifecycleStatus, Verdict


@dataclass(frozen=True, slots=True)
class DeploymentExecutionResult:
    """The decisions of a batch, in the order of its deployments."""

    decisions: tuple[ClassifiedDecision, ...] = ()

    def __add__(self, other: Self) -> Self:
        return type(self)(self.decisions + other.decisions)

    @property
    def successes(self) -> tuple[ClassifiedDecision, ...]:
        return self._with(Verdict.SUCCESS)

    @property
    def need_retry(self) -> tuple[ClassifiedDecision, ...]:
        return self._with(Verdict.NEED_RETRY)

    @property
    def skipped(self) -> tuple[ClassifiedDecision, ...]:
        return self._with(Verdict.SKIPPED)

    @property
    def errors(self) -> tuple[ClassifiedDecision, ...]:
        return self._with(Verdict.ERROR, Verdict.EXPIRED, Verdict.GIVE_UP)

    def _with(self, *verdicts: Verdict) -> tuple[ClassifiedDecision, ...]:
        return tuple(decision for decision in self.decisions if decision.verdict in verdicts)


class DeploymentHandler(ABC):
    """Looks at deployments in its target statuses and decides about each.

    `lock_id`: handlers with the same lock id share the slots of one Redis lock; None takes no lock.
    """

    name: ClassVar[str]
    event: ClassVar[DoDeploymentLifecycleEvent]
    cadence: ClassVar[DeploymentTaskSpec]
    lock_id: ClassVar[str | None]
    targets: ClassVar[frozenset[DeploymentLifecycleStatus]]
    transitions: ClassVar[DeploymentStatusTransitions]

    @abstractmethod
    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        """Decide about one deployment."""

    def bounds(self, deployment: Deployment) -> Bounds:  # noqa: ARG002  (most phases have no limit)
        """The deadlines of this phase and the failures that it allows."""
        return Bounds()

    def glance(self, glimpse: Glimpse, now: datetime) -> Wait | None:  # noqa: ARG002
        """The wait that counts alone show; None if it takes the routes, or is no wait."""
        return None

    def execute(self, deployments: Iterable[Deployment], now: datetime) -> DeploymentExecutionResult:
        batch = tuple(deployments)
        summary = contained(self.decide, batch, now)
        decisions = (
            summary.assignments.get(deployment.id) or Decision(Verdict.ERROR, summary.errors[deployment.id])
            for deployment in batch
        )
        return DeploymentExecutionResult(
            tuple(self.classified(decision, of, now) for decision, of in zip(decisions, batch, strict=True))
        )

    def classified(self, decision: Decision, deployment: Deployment, now: datetime) -> ClassifiedDecision:
        """Apply the limits of this phase, after stopped deadlines are moved."""
        rollout, limited = deployment.rollout, deployment
        if rollout is not None and rollout.clock_stopped_at is not None:
            limited = replace(deployment, rollout=with_clock_running(rollout, now))
        return classify(decision, deployment, self.transitions, self.bounds(limited), now)
