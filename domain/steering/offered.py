"""Which verbs would be taken now: the shipped rules are asked, and what they refuse is not offered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from domain.model.deployment import Deployment, RolloutOutcome
from domain.model.policy import DeploymentPolicy
from domain.steering.activation import RUN_ALREADY, ActivationRequest, activate, restarted_revision
from domain.steering.freezes import Frozen
from domain.steering.past import EndedRollout, way_back
from domain.steering.steered import Asking, Steered
from domain.steering.trying_again import retry
from domain.steering.verbs import abort, pause, promote, resume, scale, undo
from domain.words.errors import RollwayError

_NOT_STORED_YET = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Past:
    """What rules know beside the snapshot.

    `other`: a revision that neither runs nor is on its way, if there is one. `last`: the revision of the last rollout,
    and how it ended, None while it runs. `ended`: the rollouts that an undo looks back over, the eldest first.
    `frozen`: the freeze that is on.
    """

    policy: DeploymentPolicy | None
    other: UUID | None = None
    last: tuple[UUID, RolloutOutcome | None] | None = None
    ended: Sequence[EndedRollout] = ()
    frozen: Frozen | None = None

    def activation(self, revision_id: UUID) -> ActivationRequest:
        """What is asked of that revision. Names are only said, so none is needed."""
        return ActivationRequest(revision_id, "", None, self.policy, frozen=self.frozen)


def offered(deployment: Deployment, past: Past, asking: Asking) -> tuple[str, ...]:
    """The verbs that would change the deployment, in the order of buttons; others are refused, or it is so already."""
    return tuple(verb for verb, rule in _rules(deployment, past, asking).items() if _changes(rule))


def _changes(rule: Callable[[], Steered | None]) -> bool:
    try:
        steered = rule()
    except RollwayError:
        return False
    return steered is not None and not steered.already and steered.details.get("activation") not in RUN_ALREADY


def _rules(deployment: Deployment, past: Past, asking: Asking) -> Mapping[str, Callable[[], Steered | None]]:
    return {
        "resume": lambda: resume(deployment, asking),
        "promote": lambda: promote(deployment),
        "pause": lambda: pause(deployment, asking),
        "abort": lambda: abort(deployment, asking),
        "activate": lambda: activate(deployment, past.activation(past.other), asking) if past.other else None,
        "undo": lambda: undo(deployment, _back(deployment, past), asking),
        "retry": lambda: retry(deployment, *_last(past), asking),
        "restart": lambda: _restart(deployment, past, asking),
        "scale": lambda: scale(deployment, deployment.desired_replicas + 1),
    }


def _back(deployment: Deployment, past: Past) -> ActivationRequest | None:
    """None where the rollout under way turns."""
    return None if deployment.rollout else past.activation(way_back(deployment, past.ended).revision.id)


def _last(past: Past) -> tuple[ActivationRequest | None, RolloutOutcome | None]:
    return (past.activation(past.last[0]), past.last[1]) if past.last else (None, None)


def _restart(deployment: Deployment, past: Past, asking: Asking) -> Steered:
    """To a revision of its own."""
    restarted_revision(deployment)
    return activate(deployment, past.activation(_NOT_STORED_YET), asking)
