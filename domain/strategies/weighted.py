"""What a strategy says that shares requests out between the new side and the old one; the others leave it as it is."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from domain.judge.judge import Judging
from domain.model.canary import CanaryState
from domain.model.deployment import Deployment, Rollout, Route
from domain.model.policy import StrategySpec

SpecT = TypeVar("SpecT", bound=StrategySpec)


class TwoSided(Generic[SpecT]):
    """Answers for a strategy whose requests all go to whatever is healthy."""

    def begins_with(self, deployment: Deployment, spec: SpecT) -> CanaryState | None:  # noqa: ARG002
        """Say what state a rollout begins with that has just been asked for."""
        return None

    def turned_back(self, deployment: Deployment, spec: SpecT, *, at_once: bool) -> CanaryState | None:  # noqa: ARG002
        """Say what state the way back begins with; `at_once`: nothing is left to the new side."""
        return deployment.rollout.canary if deployment.rollout else None

    def answering(self, deployment: Deployment, spec: SpecT, start_seconds: float | None) -> str | None:  # noqa: ARG002
        """Say who answers on the way back while the old side is too small for all requests; None where it is not.

        `start_seconds`: how long replicas took to come up of late; None where none has.
        """
        return None

    def judging(self, spec: SpecT) -> Judging | None:  # noqa: ARG002
        """Say what is judged of what proxies count, and of copies of requests; None where nothing is."""
        return None

    def control(self, deployment: Deployment, rollout: Rollout, spec: SpecT) -> tuple[Route, ...]:  # noqa: ARG002
        """Name the old replicas that get as many requests as the new ones, to be compared with them."""
        return ()

    def cautions(self, spec: SpecT, desired: int, *, ahead: bool) -> Iterable[str]:  # noqa: ARG002
        """Say where its judge may err, and `ahead` how it decides."""
        return ()
