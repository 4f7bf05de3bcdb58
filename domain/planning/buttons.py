"""The commands that a deployment accepts now, and why it refuses others: each rule is tried on its snapshot."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from domain.commands.base import DeploymentCommand
from domain.commands.fields import fields_of
from domain.commands.registry import COMMANDS
from domain.commands.rollout_commands import Abort, ActivateRevision, Restart, Retry, RollingUpdate, Undo
from domain.commands.steering_command import SteeringCommand
from domain.model.deployment import Deployment
from domain.model.states import ROLLING_BACK, Lifecycle, RolloutOutcome
from domain.steering.activation import RUN_ALREADY, ActivationRequest, restarted_revision
from domain.steering.command_effect import Context
from domain.steering.gates import FrozenError
from domain.steering.rollout_history import NoPreviousRevisionError, Past, undo_goal, way_back
from domain.text.errors import RevisionNotFoundError, RollwayError

_NOT_STORED_YET = UUID(int=0)


@dataclass(frozen=True, slots=True)
class SupposedCase:
    """A command that is only tried on a deployment. Names would appear only in its sentences, so they are empty."""

    deployment: Deployment
    command: SteeringCommand
    asking: Context
    past: Past

    def asked_for(self) -> ActivationRequest:
        """The activation of another revision. Raises RevisionNotFoundError where there is none."""
        if self.past.other is None:
            raise RevisionNotFoundError(f"{self.deployment.name} has no other revision")
        return self._activation(self.past.other)

    def changed(self) -> ActivationRequest:
        """The activation of a changed revision. Raises RevisionNotFoundError where nothing runs."""
        if self.deployment.current_revision_id is None:
            raise RevisionNotFoundError(f"{self.deployment.name} runs nothing that could be changed")
        return self._activation(_NOT_STORED_YET)

    def same_again(self) -> ActivationRequest:
        """The activation of a copy of the running revision. Raises WrongStateError."""
        restarted_revision(self.deployment)
        return self._activation(_NOT_STORED_YET)

    def way_back(self) -> ActivationRequest | None:
        """The activation of the revision before; None where the rollout under way turns back instead."""
        if self.deployment.rollout is not None:
            return None
        back = way_back(self.deployment, self.past.ended, self.asking.at, self.past.settings)
        return self._activation(back.revision.id)

    def start_seconds(self) -> float | None:
        """None, since the sentence is not used."""
        return None

    def last_rollout(self) -> tuple[ActivationRequest | None, RolloutOutcome | None]:
        """The activation of the last rollout's revision, and how that rollout ended."""
        if self.past.last is None:
            return None, None
        return replace(self._activation(self.past.last[0]), is_undo=self.past.last_is_undo), self.past.last[1]

    def _activation(self, revision_id: UUID) -> ActivationRequest:
        return ActivationRequest(
            revision_id,
            "",
            None,
            self.past.policy,
            supersede=getattr(self.command, "supersede", False),
            frozen=self.past.frozen,
            through_freeze=getattr(self.command, "through_freeze", False),
        )


def available_commands(deployment: Deployment, past: Past, asking: Context) -> tuple[type[DeploymentCommand], ...]:
    """The commands that would change the deployment; others are refused, or change nothing.

    A command without a rule, such as set_policy, is accepted until the deployment is being destroyed.
    """
    kinds = [kind for kind in COMMANDS.values() if issubclass(kind, DeploymentCommand)]
    is_alive = deployment.status.lifecycle not in (Lifecycle.DESTROYING, Lifecycle.DESTROYED)
    return tuple(
        kind
        for kind in kinds
        if (_is_taken(deployment, kind, past, asking) if issubclass(kind, SteeringCommand) else is_alive)
    )


def _is_taken(
    deployment: Deployment,
    kind: type[SteeringCommand],
    past: Past,
    asking: Context,
    values: Mapping[str, Any] | None = None,
) -> bool:
    if kind is Undo and past.settings is not None and not past.settings.is_undone:
        return True
    examples = _examples(deployment, kind, values or {})
    return any(_changes(SupposedCase(deployment, command, asking, past)) for command in examples)


def _examples(
    deployment: Deployment, kind: type[SteeringCommand], values: Mapping[str, Any]
) -> Iterator[SteeringCommand]:
    """The command with its example values, then with the least of each number: one of the two is a change."""
    own = {"request_id": "offered", "reason": "offered", "deployment": deployment.name}
    example: dict[str, Any] = {**kind.example, **own, **values}
    least = {each.name: each.least for each in fields_of(kind) if each.is_needed and each.least is not None}
    for payload in (example, {**example, **least}):
        yield kind.model_validate(payload)


def _changes(case: SupposedCase) -> bool:
    try:
        effect = case.command.steer(case)
    except RollwayError:
        return False
    return not effect.already and effect.details.get("activation") not in RUN_ALREADY


@dataclass(frozen=True, slots=True)
class Offer:
    """A command that would change the deployment, with what its button shows.

    `goal`: where it leads, such as "back to v1"; empty: the label says enough. `what`: its effect in a sentence; empty:
    the one of its class. `revision`: the one that it leads to. `values`: the initial values of its fields.
    """

    command: type[DeploymentCommand]
    goal: str = ""
    what: str = ""
    revision: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Missing:
    """A command that people look for, and why it is not offered.

    `way`: another way to the same, in words; empty: a row of the revisions leads there, or nothing does.
    """

    command: type[DeploymentCommand]
    reason: str
    way: str = ""
    offer: Offer | None = None


_WAYS: Mapping[tuple[str, ...], str] = {
    ("through_freeze",): "ignore the freeze",
    ("supersede",): "replace the rollout",
    ("supersede", "through_freeze"): "replace the rollout and ignore the freeze",
}
"""The fields by which a command starts something in spite of a refusal."""
_LOOKED_FOR = (ActivateRevision, RollingUpdate, Undo, Retry, Restart)
"""The commands whose absence is explained; retry only where something could be retried."""


def offers(deployment: Deployment, past: Past, asking: Context) -> tuple[Offer, ...]:
    """The commands to offer. In a rollout Abort goes back, so Undo, which would do the same, is left out."""
    kinds = (kind for kind in available_commands(deployment, past, asking) if kind is not Undo)
    undo = _undo(deployment, past, asking)
    return (*(_offer(deployment, kind, past) for kind in kinds), *([undo] if isinstance(undo, Offer) else []))


def missing_commands(deployment: Deployment, past: Past, asking: Context) -> tuple[Missing, ...]:
    """The commands that people look for, but that are not offered; none while the deployment is being destroyed."""
    if deployment.status.lifecycle in (Lifecycle.DESTROYING, Lifecycle.DESTROYED):
        return ()
    offered_commands = {offer.command for offer in offers(deployment, past, asking)}
    absent = [_missing_command(deployment, kind, past, asking) for kind in _LOOKED_FOR if kind not in offered_commands]
    return tuple(each for each in absent if each.command is not Retry or each.way)


def _offer(deployment: Deployment, kind: type[DeploymentCommand], past: Past) -> Offer:
    if kind is ActivateRevision:
        return Offer(kind, values={"revision": past.newest_good} if past.newest_good else {})
    if kind is Abort and deployment.status != ROLLING_BACK:
        return Offer(kind, f"back to {past.current}", f"Leave the rollout and go back to {past.current}.")
    return Offer(kind)


def _undo(deployment: Deployment, past: Past, asking: Context) -> Offer | Missing:
    """The undo by the ladder.

    a rollout is under way               -> missing: Abort, or the way back under way, leads to the same
    a file changed settings last         -> its settings are put back
    there is a revision to go back to    -> that one, by its name, so that the button does what it says
    the one before was rolled back       -> missing, with another way there
    otherwise                            -> missing
    """
    offer = Offer(Undo)
    if deployment.status == ROLLING_BACK:
        return Missing(Undo, f"it is being rolled back to {past.current}", offer=offer)
    if deployment.rollout is not None:
        return Missing(Undo, f"a rollout is under way, and Abort goes back to {past.current}", offer=offer)
    if past.settings is not None and not past.settings.is_undone:
        what = "Put the settings of before the last file back. No replica moves to another revision."
        return Offer(Undo, "back to the settings of before", what)
    try:
        goal = undo_goal(deployment, past, asking.at)
    except NoPreviousRevisionError as refusal:
        rolled_back = str(refusal.detail.get("rolled_back") or "")
        way = f"go back to {rolled_back} anyway" if rolled_back else ""
        values = {"revision": rolled_back} if rolled_back else {}
        return Missing(Undo, _in_short(refusal), way, replace(offer, revision=rolled_back, values=values))
    except RollwayError as refusal:
        return Missing(Undo, _in_short(refusal), offer=offer)
    what = f"Go back to {goal.name}, which ran before {past.current}, at once."
    if goal.is_further:
        what = f"The last rollout is undone already, and {past.current} runs: go further back, to {goal.name}, at once."
    return Offer(Undo, f"back to {goal.name}", what, goal.name, {"revision": goal.name})


def _missing_command(deployment: Deployment, kind: type[SteeringCommand], past: Past, asking: Context) -> Missing:
    undo = _undo(deployment, past, asking) if kind is Undo else None
    if isinstance(undo, Missing):
        return undo
    reason = _refusal(deployment, kind, past, asking)
    for names, way in _WAYS.items():
        values = dict.fromkeys(names, True)
        if kind.model_fields.keys() >= set(names) and _is_taken(deployment, kind, past, asking, values):
            offer = _offer(deployment, kind, past)
            return Missing(kind, reason, way, replace(offer, values={**offer.values, **values}))
    return Missing(kind, reason)


def _refusal(deployment: Deployment, kind: type[SteeringCommand], past: Past, asking: Context) -> str:
    """Why the command is refused, in short."""
    if deployment.rollout is not None and kind is not Retry:
        back = deployment.status == ROLLING_BACK
        return f"it is being rolled back to {past.current}" if back else "a rollout is under way"
    try:
        command = next(_examples(deployment, kind, {}))
        command.steer(SupposedCase(deployment, command, asking, past))
    except FrozenError:
        return past.frozen.in_short(asking.at) if past.frozen else "frozen"
    except RollwayError as refusal:
        return _in_short(refusal)
    return "it would change nothing"


def _in_short(refusal: RollwayError) -> str:
    """The message without its advice, which is for command lines."""
    return refusal.message.partition("; ")[0]
