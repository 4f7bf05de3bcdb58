"""Decides the effect of activating a revision, for every state of a deployment.

destroying, destroyed                                -> error
deploying to the same revision                       -> resume: the running rollout is the answer; an undo to it takes
                                                        the place of a rollout that is none
deploying to another, or rolling back                -> error naming both ways out, unless supersede
no revision yet                                      -> it becomes the first one
already current, no other revision, no other size    -> nothing to do
already current                                      -> converge
a policy                                             -> begin a rollout
no policy                                            -> the pointer moves, converge replaces the routes

A size that comes with the revision is taken over in each of them. Where it leads to new replicas, and no host can have
the secrets that the revision refers to, it is refused; unless it is the way back, also where no host that is known, up
or down, has the labels that the revision requires; and where it starts something in a freeze, unless a person goes
through the freeze.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from uuid import UUID

from domain.cycle.rollout import Begin, begin_rollout, resized, rollout_of, turned_back, unpaused, with_failures_allowed
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.model.states import ROLLING_BACK, Lifecycle, RolloutOutcome
from domain.revisions.host_labels import Labels, refuse_unfit
from domain.revisions.secret_refs import SecretCheck, passed_over
from domain.steering.command_effect import Context, Effect
from domain.steering.device_check import DeviceCase, check_devices, with_room
from domain.steering.gates import Frozen
from domain.text.errors import RollwayError, WrongStateError


class DeploymentAlreadyInProgressError(RollwayError):
    """A rollout to another revision is under way."""


class Activation(StrEnum):
    """The outcome of an activation."""

    FIRST = "first"
    RESUMED = "resumed"
    BEGUN = "begun"
    SUPERSEDED = "superseded"
    MOVED = "moved"
    CONVERGING = "converging"
    ALREADY_ACTIVE = "already_active"


RUN_ALREADY = frozenset({Activation.RESUMED, Activation.ALREADY_ACTIVE})
"""Activations that start no further replicas."""


@dataclass(frozen=True, slots=True)
class ActivationRequest:
    """The revision to activate, by id and name, and the circumstances.

    `deploying_name`: of the revision being deployed, if any. `desired`: a size that comes with the revision. `secrets`:
    what the hosts say of those that it refers to. `is_undo`: it is the way back, so its traffic moves at once.
    `frozen`: the freeze that is on, and `through_freeze`: whether it is to start nevertheless.
    `only_failed`: why its last replica failed, where none has ever come up and that was not asked for anyway.
    `labels`: those that it requires of its hosts; `hosts`: the labels of each host that is known, where it does.
    `prepares`: hosts are prepared for it first.
    `devices`: those that its replicas need, if any.
    """

    revision_id: UUID
    revision_name: str
    deploying_name: str | None
    policy: DeploymentPolicy | None
    supersede: bool = False
    desired: int | None = None
    secrets: tuple[SecretCheck, ...] = ()
    is_undo: bool = False
    frozen: Frozen | None = None
    through_freeze: bool = False
    only_failed: str = ""
    labels: Labels = field(default_factory=dict)
    hosts: Mapping[str, Labels] = field(default_factory=dict)
    prepares: bool = False
    devices: DeviceCase | None = None


def activate(deployment: Deployment, request: ActivationRequest, asking: Context) -> Effect:
    """Apply the ladder. Raises its refusals, NoHostFitsError, NoDevicesError, MissingSecretError and FrozenError."""
    activation = decide_activation(deployment, request)
    starts = _starts(deployment, request, activation)
    if starts:
        refuse_unfit(request.revision_name, request.labels, request.hosts)
    is_frozen = request.frozen if starts else None
    if is_frozen is not None and not request.through_freeze:
        raise is_frozen.refusal(deployment.name)
    without = {} if activation in RUN_ALREADY else passed_over(request.revision_name, request.secrets)
    effect = _activated(deployment, request, activation, asking)
    if request.devices is not None:
        effect = replace(effect, deployment=with_room(effect.deployment, request.devices, asking.at))
        if not request.is_undo and activation not in RUN_ALREADY:
            check_devices(effect.deployment, request.revision_name, request.devices, asking.at)
    if is_frozen is not None:
        effect = replace(effect, sentence=f"{effect.sentence}, through freeze {is_frozen.freeze}")
    details = {"passed_over": without} if without else {}
    return effect.with_details(revision=request.revision_name, activation=activation.value, **details)


def _starts(deployment: Deployment, request: ActivationRequest, activation: Activation) -> bool:
    """Whether something begins by it, which a freeze or a want of hosts may prevent; never the way back."""
    is_back = request.is_undo or request.revision_id == deployment.current_revision_id
    return activation not in RUN_ALREADY and not (is_back and activation is not Activation.FIRST)


def decide_activation(deployment: Deployment, request: ActivationRequest) -> Activation:
    """Raises WrongStateError and DeploymentAlreadyInProgressError; changes nothing."""
    match deployment.status.lifecycle:
        case Lifecycle.DESTROYING | Lifecycle.DESTROYED:
            raise WrongStateError.of_leaving(deployment.name, deployment.status, "a revision can be activated")
        case Lifecycle.PENDING:
            return Activation.FIRST
        case Lifecycle.DEPLOYING:
            return _while_deploying(deployment, request)
        case Lifecycle.READY | Lifecycle.SCALING:
            return _while_resting(deployment, request)


def _while_deploying(deployment: Deployment, request: ActivationRequest) -> Activation:
    rolling_back = deployment.status == ROLLING_BACK
    if _leads_there(deployment, request) and (rollout_of(deployment, "resume").is_undo or not request.is_undo):
        return Activation.RESUMED
    if request.supersede:
        return Activation.SUPERSEDED
    doing = "rolling back from" if rolling_back else "deploying"
    message = (
        f"{deployment.name} is {doing} {request.deploying_name}; wait until that has ended, "
        f"or leave it for {request.revision_name} with supersede (--supersede)"
    )
    raise DeploymentAlreadyInProgressError(
        message, deployment=deployment.name, deploying=request.deploying_name, asked_for=request.revision_name
    )


def _leads_there(deployment: Deployment, request: ActivationRequest) -> bool:
    return request.revision_id == deployment.deploying_revision_id and deployment.status != ROLLING_BACK


def _while_resting(deployment: Deployment, request: ActivationRequest) -> Activation:
    if request.revision_id != deployment.current_revision_id:
        return Activation.BEGUN if request.policy else Activation.MOVED
    foreign = any(
        route.revision_id != request.revision_id and route.parked_until is None for route in deployment.active_routes
    )
    another_size = request.desired not in (None, deployment.desired_replicas)
    return Activation.CONVERGING if foreign or another_size else Activation.ALREADY_ACTIVE


def _activated(deployment: Deployment, request: ActivationRequest, activation: Activation, asking: Context) -> Effect:
    sentence = _sentence(request, activation)
    match activation:
        case Activation.ALREADY_ACTIVE:
            return Effect.unchanged(deployment)
        case Activation.FIRST | Activation.MOVED | Activation.CONVERGING:
            return Effect.to(_pointing_to(deployment, request), sentence)
        case Activation.RESUMED:
            return Effect.to(_resumed(deployment, request, asking), sentence)
        case Activation.SUPERSEDED if request.revision_id == deployment.current_revision_id:
            back = turned_back(_with_size(deployment, request), asking.at)
            return Effect.to(back, sentence, back_reason=f"{request.revision_name} asked for again {asking.why}")
        case Activation.SUPERSEDED:
            return Effect.to(_new_rollout(deployment, request, asking), sentence, ended=RolloutOutcome.SUPERSEDED)
        case Activation.BEGUN:
            return Effect.to(_new_rollout(deployment, request, asking), sentence)


def _sentence(request: ActivationRequest, activation: Activation) -> str:
    name = request.revision_name
    to = f"back to {name}" if request.is_undo else f"to {name}"
    match activation:
        case Activation.FIRST:
            return f"first activation of {name}"
        case Activation.RESUMED:
            return f"resumed the rollout {to}"
        case Activation.BEGUN:
            return f"started the rollout {to}"
        case Activation.SUPERSEDED:
            return f"started the rollout {to}, in place of the one before"
        case _:
            return f"moved {to}"


def _pointing_to(deployment: Deployment, request: ActivationRequest) -> Deployment:
    return replace(
        deployment,
        current_revision_id=request.revision_id,
        desired_replicas=deployment.desired_replicas if request.desired is None else request.desired,
        degraded_reason=None,
        retry_at=None,
    )


def _resumed(deployment: Deployment, request: ActivationRequest, asking: Context) -> Deployment:
    going_on = unpaused(deployment, asking.at)
    if request.desired is None:
        return going_on
    rollout = replace(with_failures_allowed(going_on, request.desired), desired_with_revision=request.desired)
    return replace(going_on, desired_replicas=request.desired, rollout=rollout)


def _with_size(deployment: Deployment, request: ActivationRequest) -> Deployment:
    """The size is that of the revision to go back to."""
    if request.desired is None:
        return deployment
    return replace(deployment, rollout=resized(deployment, request.desired))


def _new_rollout(deployment: Deployment, request: ActivationRequest, asking: Context) -> Deployment:
    """A rollout that is superseded lends its policy, in case the deployment has none any more.

    Where it leads to the same revision, the size that came with that comes along.
    """
    policy, desired = request.policy or rollout_of(deployment, "supersede").policy, request.desired
    if desired is None and deployment.rollout is not None and _leads_there(deployment, request):
        desired = deployment.rollout.desired_with_revision
    begin = Begin(asking.rollout_id, request.revision_id, policy, desired, request.is_undo, request.prepares)
    return begin_rollout(deployment, begin, asking.at)


def restarted_revision(deployment: Deployment) -> UUID:
    """The revision that a restart rolls again. Raises WrongStateError.

    a rollout                            -> error: it brings new replicas anyway
    nothing runs yet, or nothing any more -> error
    otherwise                            -> the current one
    """
    current = deployment.current_revision_id
    if deployment.rollout is not None:
        raise WrongStateError(f"{deployment.name} is {deployment.status}; restart it when that has ended, or abort it")
    if current is None or deployment.status.lifecycle not in (Lifecycle.READY, Lifecycle.SCALING):
        raise WrongStateError(f"{deployment.name} is {deployment.status}; there is no revision that could be restarted")
    return current
