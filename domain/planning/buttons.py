"""The commands that a deployment would take now: each rule is tried on its snapshot."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from domain.commands.base import DeploymentCommand
from domain.commands.fields import fields_of
from domain.commands.registry import COMMANDS
from domain.commands.rollout_commands import Undo
from domain.commands.steering_command import SteeringCommand
from domain.model.deployment import Deployment
from domain.model.states import Lifecycle, RolloutOutcome
from domain.steering.activation import RUN_ALREADY, ActivationRequest, restarted_revision
from domain.steering.command_effect import Asking
from domain.steering.rollout_history import Past, way_back
from domain.text.errors import RevisionNotFoundError, RollwayError

_NOT_STORED_YET = UUID(int=0)


@dataclass(frozen=True, slots=True)
class SupposedCase:
    """A command that nobody has given, to the deployment as it is.

    Names matter only in sentences, so none is needed.
    """

    deployment: Deployment
    command: SteeringCommand
    asking: Asking
    past: Past

    def asked_for(self) -> ActivationRequest:
        """To another revision. Raises RevisionNotFoundError where there is none."""
        if self.past.other is None:
            raise RevisionNotFoundError(f"{self.deployment.name} has no other revision")
        return self._activation(self.past.other)

    def changed(self) -> ActivationRequest:
        """To a revision of its own. Raises RevisionNotFoundError where nothing runs that could be changed."""
        if self.deployment.current_revision_id is None:
            raise RevisionNotFoundError(f"{self.deployment.name} runs nothing that could be changed")
        return self._activation(_NOT_STORED_YET)

    def same_again(self) -> ActivationRequest:
        """To a revision of its own. Raises WrongStateError."""
        restarted_revision(self.deployment)
        return self._activation(_NOT_STORED_YET)

    def way_back(self) -> ActivationRequest | None:
        """To the revision before; None where the rollout under way turns."""
        if self.deployment.rollout is not None:
            return None
        back = way_back(self.deployment, self.past.ended, self.asking.at, self.past.settings)
        return self._activation(back.revision.id)

    def start_seconds(self) -> float | None:
        """None: the sentence is not used."""
        return None

    def last_rollout(self) -> tuple[ActivationRequest | None, RolloutOutcome | None]:
        """The revision of the last rollout, and how it ended."""
        if self.past.last is None:
            return None, None
        return replace(self._activation(self.past.last[0]), is_undo=self.past.last_is_undo), self.past.last[1]

    def _activation(self, revision_id: UUID) -> ActivationRequest:
        return ActivationRequest(revision_id, "", None, self.past.policy, frozen=self.past.frozen)


def available_commands(deployment: Deployment, past: Past, asking: Asking) -> tuple[type[DeploymentCommand], ...]:
    """The commands that would change the deployment; others are refused, or change nothing.

    A command without a rule, such as its policy, can be given until the deployment is being destroyed.
    """
    kinds = [kind for kind in COMMANDS.values() if issubclass(kind, DeploymentCommand)]
    is_alive = deployment.status.lifecycle not in (Lifecycle.DESTROYING, Lifecycle.DESTROYED)
    return tuple(
        kind
        for kind in kinds
        if (_is_taken(deployment, kind, past, asking) if issubclass(kind, SteeringCommand) else is_alive)
    )


def _is_taken(deployment: Deployment, kind: type[SteeringCommand], past: Past, asking: Asking) -> bool:
    if kind is Undo and past.settings is not None and not past.settings.is_undone:
        return True
    return any(_changes(SupposedCase(deployment, command, asking, past)) for command in _examples(deployment, kind))


def _examples(deployment: Deployment, kind: type[SteeringCommand]) -> Iterator[SteeringCommand]:
    """The command with its example, then with the least of each number: one of the two is a change."""
    example: dict[str, Any] = {**kind.example, "request_id": "offered", "deployment": deployment.name}
    least = {field.name: field.least for field in fields_of(kind) if field.is_needed and field.least is not None}
    for payload in (example, {**example, **least}):
        yield kind.model_validate(payload)


def _changes(case: SupposedCase) -> bool:
    try:
        effect = case.command.steer(case)
    except RollwayError:
        return False
    return not effect.already and effect.details.get("activation") not in RUN_ALREADY
