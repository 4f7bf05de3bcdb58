"""The questions that only a strategy with weights answers; every other strategy keeps these defaults."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from domain.judge.judge import Judging
from domain.model.canary import CanaryState
from domain.model.deployment import Deployment, Rollout, Route
from domain.model.policy import StrategySpec

SpecT = TypeVar("SpecT", bound=StrategySpec)


class UnweightedDefaults(Generic[SpecT]):
    """The defaults: all requests go to every healthy replica."""

    def begins_with(self, deployment: Deployment, spec: SpecT) -> CanaryState | None:  # noqa: ARG002
        """The canary's state at the start of a rollout."""
        return None

    def turned_back(self, deployment: Deployment, spec: SpecT, *, at_once: bool) -> CanaryState | None:  # noqa: ARG002
        """The canary's state at the start of the way back; `at_once`: the new side gets no more requests."""
        return deployment.rollout.canary if deployment.rollout else None

    def answering(self, deployment: Deployment, spec: SpecT, start_seconds: float | None) -> str | None:  # noqa: ARG002
        """Which replicas answer on the way back while the old side is too small for all requests; None if it is not.

        `start_seconds`: the start time of recent replicas; None if there is none.
        """
        return None

    def judging(self, spec: SpecT) -> Judging | None:  # noqa: ARG002
        """The settings of the judge; None without one."""
        return None

    def control(self, deployment: Deployment, rollout: Rollout, spec: SpecT) -> tuple[Route, ...]:  # noqa: ARG002
        """The old replicas that get as many requests as the new ones, for comparison."""
        return ()

    def cautions(self, spec: SpecT, desired: int, *, is_plan: bool) -> Iterable[str]:  # noqa: ARG002
        """Sentences about where its judge may err; `is_plan`: and how it decides."""
        return ()
