"""Commands that steer one deployment: each names the pure rule that decides about it."""

from abc import ABC, abstractmethod
from typing import Protocol

from domain.commands.base import DeploymentCommand, Starting
from domain.model.deployment import Deployment
from domain.model.states import RolloutOutcome
from domain.steering.activation import ActivationRequest
from domain.steering.command_effect import Context, Effect


class Case(Protocol):
    """A deployment that a command steers. A rule reads only what it needs beyond the snapshot."""

    @property
    def deployment(self) -> Deployment:
        """The snapshot."""

    @property
    def asking(self) -> Context:
        """The asker, and the time."""

    def asked_for(self) -> ActivationRequest:
        """The revision that an activation names. Raises RevisionNotFoundError."""

    def changed(self) -> ActivationRequest:
        """The revision that a rolling update names or makes."""

    def same_again(self) -> ActivationRequest:
        """A new revision with the content of the current one. Raises WrongStateError."""

    def way_back(self) -> ActivationRequest | None:
        """The revision that an undo goes to; None where a rollout can turn back."""

    def start_seconds(self) -> float | None:
        """The seconds that recent replicas took to come up; None if there is none."""

    def last_rollout(self) -> tuple[ActivationRequest | None, RolloutOutcome | None]:
        """The revision of the last rollout, and how it ended."""


class SteeringCommand(DeploymentCommand, ABC):
    """A command that steers one deployment by a pure rule."""

    @abstractmethod
    def steer(self, case: Case) -> Effect:
        """Apply the rule. Raises its refusals."""


class StartingCommand(Starting, SteeringCommand, ABC):
    """A command that starts something of one deployment."""
