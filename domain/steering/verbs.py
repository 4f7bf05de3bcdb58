"""Decides people's commands: a pure function for each, with its refusals.

Each gets the deployment and, where it matters, the actor, the reason and the time. Raises the refusals of `domain`.
"""

from dataclasses import replace

from domain.cycle.effects import with_clock_stopped
from domain.cycle.evaluator import EVALUATOR
from domain.cycle.rollout import (
    NoRolloutError,
    past_all_weights,
    resized,
    resized_with_revision,
    rollout_of,
    turned_back,
    unpaused,
)
from domain.model.deployment import Deployment, Rollout
from domain.model.states import ROLLING_BACK, DeploymentLifecycleStatus, Lifecycle, RolloutOutcome
from domain.steering.activation import RUN_ALREADY, ActivationRequest, activate
from domain.steering.command_effect import Context, Effect
from domain.strategies.converge import is_proven
from domain.text.errors import RollwayError, WrongStateError
from domain.text.numbers import number_of


class OnlyFailedError(RollwayError):
    """No replica of the revision to go back to has ever come up."""


DESTROYING = DeploymentLifecycleStatus(Lifecycle.DESTROYING)


def pause(deployment: Deployment, asking: Context) -> Effect:
    """Hold a rollout in its present state.

    no rollout       -> error
    paused already   -> nothing to do
    otherwise        -> paused, and its clocks stand still
    """
    rollout = rollout_of(deployment, "pause")
    if deployment.paused_at is not None:
        return Effect.unchanged(deployment)
    return Effect.to(replace(deployment, paused_at=asking.at, rollout=with_clock_stopped(rollout, asking.at)), "paused")


def resume(deployment: Deployment, asking: Context) -> Effect:
    """Continue a paused rollout. Its next cycle moves the deadlines, by the time that the clocks stood still.

    no rollout       -> error
    not paused       -> error
    otherwise        -> no longer paused
    """
    rollout_of(deployment, "resume")
    if deployment.paused_at is None:
        raise WrongStateError(f"{deployment.name} is not paused; only a paused rollout can be resumed")
    return Effect.to(unpaused(deployment, asking.at), "resumed")


def promote(deployment: Deployment, *, full: bool = False) -> Effect:
    """Let the traffic move to green, or to the next weight of a canary; with `full` past all of its weights.

    no rollout                              -> error
    a strategy that moves traffic by itself -> error
    full, and no canary                     -> error
    rolling back                            -> error naming `retry`
    paused                                  -> error naming `resume`
    a canary past its last weight           -> nothing to do
    full                                    -> the canary rolls the rest at once
    asked for already                       -> nothing to do
    otherwise                               -> the next cycle that finds green, or the canary, complete promotes it
    """
    rollout = rollout_of(deployment, "promote")
    strategy = EVALUATOR.strategy_of(rollout.policy)
    if strategy.promotion is None:
        raise WrongStateError(f"a {rollout.policy.strategy} moves the traffic by itself: nothing waits to be promoted")
    if full and not strategy.weighs:
        raise WrongStateError(f"a {rollout.policy.strategy} has no weights to pass by; promote it without --full")
    if deployment.status == ROLLING_BACK:
        raise WrongStateError(f"{deployment.name} is rolling back; 'rollway retry {deployment.name}' turns it forward")
    if deployment.paused_at is not None:
        raise WrongStateError(f"{deployment.name} is paused; resume it, then promote it")
    rest = past_all_weights(rollout)
    if rollout.promote_requested > full or (strategy.weighs and rest is None):
        return Effect.unchanged(deployment)
    if full:
        return Effect.to(replace(deployment, rollout=rest), "past all weights: the rest follows")
    return Effect.to(replace(deployment, rollout=replace(rollout, promote_requested=True)), strategy.promotion)


def abort(deployment: Deployment, asking: Context, *, now: bool = False, start_seconds: float | None = None) -> Effect:
    """Leave a rollout. `start_seconds`: the time that recent replicas took to come up.

    no rollout                               -> error
    now, and a canary has requests           -> it turns back, and the canary has none any more
    rolling back, and not paused             -> nothing to do
    otherwise                                -> it turns back, paused or not
    """
    rollout_of(deployment, "abort")
    return _go_back(deployment, "aborted", asking, at_once=now, start_seconds=start_seconds)


def undo(
    deployment: Deployment,
    back: ActivationRequest | None,
    asking: Context,
    *,
    now: bool = False,
    start_seconds: float | None = None,
) -> Effect:
    """Go back, at once. `back`: the revision that a person named, or at rest what `rollout_history` finds.

    `start_seconds`: the time that recent replicas took to come up.

    one that has only ever failed    -> error
    a revision to go back to         -> activate it, in place of whatever is under way; no promotion is waited for
    no rollout                       -> error
    an undo that is rolling back     -> error naming `retry`
    an undo                          -> it continues, paused or not, and is promoted; nothing to do if it does that
    rolling back, and not paused     -> nothing to do
    otherwise                        -> the rollout turns back, paused or not
    """
    if back is not None:
        if back.only_failed:
            raise _only_failed(deployment.name, back)
        return activate(deployment, replace(back, supersede=True, is_undo=True), asking)
    rollout = rollout_of(deployment, "undo")
    if not rollout.is_undo:
        return _go_back(deployment, "undone", asking, at_once=now, start_seconds=start_seconds)
    if deployment.status == ROLLING_BACK:
        raise WrongStateError(
            f"the undo of {deployment.name} did not work out and turns back; 'rollway retry {deployment.name}' tries "
            f"it again, 'rollway undo {deployment.name} --to REVISION' goes elsewhere"
        )
    if deployment.paused_at is None:
        return Effect.unchanged(deployment)
    return Effect.to(unpaused(deployment, asking.at), "going back, no longer paused")


def _only_failed(name: str, back: ActivationRequest) -> OnlyFailedError:
    message = (
        f"{back.revision_name} of {name} has only ever failed: {back.only_failed}; "
        f"'rollway undo {name} --to {back.revision_name} --anyway' goes there anyway"
    )
    return OnlyFailedError(message, deployment=name, revision=back.revision_name)


def scale(deployment: Deployment, desired: int, *, with_rollout: bool = False) -> Effect:
    """Set the number of replicas.

    destroying, destroyed   -> error
    with_rollout            -> the size of the revision that is rolled out; error without a rollout, or on its way back
    in a rollout            -> the size of both revisions, on the way there and on the way back
    otherwise               -> the size; what was given up is tried again at once
    """
    if deployment.status.lifecycle in (Lifecycle.DESTROYING, Lifecycle.DESTROYED):
        raise WrongStateError.of_leaving(deployment.name, deployment.status, "it can be scaled")
    before = deployment.desired_replicas
    if with_rollout:
        rollout: Rollout | None = resized_with_revision(deployment, desired)
    else:
        rollout = resized(deployment, desired) if deployment.rollout else None
    scaled = replace(deployment, desired_replicas=desired, degraded_reason=None, retry_at=None, rollout=rollout)
    sentence = f"from {before} to {desired} replicas" if before != desired else ""
    return Effect.to(scaled, sentence).with_details(**{"from": before, "to": desired})


def destroy(deployment: Deployment, asking: Context, *, force: bool = False) -> Effect:
    """End a deployment.

    destroyed               -> nothing to do
    by force                -> destroying, and its replicas are taken as stopped, whether they are or not
    destroying              -> nothing to do
    otherwise               -> destroying; a rollout that is under way ends with it
    """
    lifecycle = deployment.status.lifecycle
    if lifecycle is Lifecycle.DESTROYED or (lifecycle is Lifecycle.DESTROYING and not force):
        return Effect.unchanged(deployment)
    destroyed = replace(
        deployment,
        status=DESTROYING,
        deploying_revision_id=None,
        rollout=None,
        paused_at=None,
        phase_started_at=asking.at,
        phase_attempts=0,
        routes=() if force else deployment.routes,
    )
    reason = f"asked for by force, {len(deployment.routes)} replicas taken as stopped" if force else "asked for"
    effect = Effect.to(destroyed, reason, ended=RolloutOutcome.DESTROYED if deployment.rollout else None)
    return replace(effect, gives_up_replicas=force)


def _go_back(
    deployment: Deployment, verb: str, asking: Context, *, at_once: bool, start_seconds: float | None
) -> Effect:
    rollout = rollout_of(deployment, verb)
    weighs = rollout.canary is not None and rollout.canary.weight
    if deployment.status == ROLLING_BACK and deployment.paused_at is None and not (at_once and weighs):
        return Effect.unchanged(deployment)
    turned = turned_back(deployment, asking.at, at_once=at_once)
    strategy = EVALUATOR.strategy_of(rollout.policy)
    answering = strategy.answering(turned, rollout.policy.spec, start_seconds) if weighs else None
    sentence = f"{verb}, going back{(answering and f'; {answering}') or ''}"
    return Effect.to(turned, sentence, back_reason=f"{verb} {asking.why}").with_details(answering=answering)


def retry(
    deployment: Deployment,
    last: ActivationRequest | None,
    outcome: RolloutOutcome | None,
    asking: Context,
    *,
    now: bool = False,
) -> Effect:
    """Begin the last rollout once more, an undo as an undo. `outcome` is None while it runs.

    now                                                      -> what failed is tried again at once, nothing begins
    there was none, or it ended otherwise than rolled back   -> the same; error where nothing has failed
    it is rolling back                                       -> a new rollout takes its place
    it is under way                                          -> the running rollout is the answer
    it was rolled back                                       -> activate its revision

    What begins waits for no pause of starts that failed before. Failed starts of before a replica that has been well
    for a minute are none.
    """
    has_none = last is None or outcome not in (None, RolloutOutcome.ROLLED_BACK)
    failures = deployment.start_failures
    failing = failures is not None and not is_proven(failures, asking.at)
    tired = failing or deployment.degraded_reason or deployment.retry_at
    if now or (has_none and tired):
        return try_now(deployment) if tired else Effect.unchanged(deployment)
    if last is None or has_none:
        raise NoRolloutError(
            f"the last rollout of {deployment.name} is {outcome or 'none'}; "
            "only one that was rolled back can be retried, and no start has failed that is tried again later",
            deployment=deployment.name,
        )
    effect = activate(deployment, replace(last, supersede=deployment.status == ROLLING_BACK), asking)
    if effect.details["activation"] in RUN_ALREADY:
        return effect
    return replace(effect, deployment=replace(effect.deployment, start_failures=None))


def try_now(deployment: Deployment) -> Effect:
    """Forget the failures: the pauses end, and the next look starts all missing replicas."""
    if deployment.status.lifecycle in (Lifecycle.DESTROYING, Lifecycle.DESTROYED):
        raise WrongStateError.of_leaving(deployment.name, deployment.status, "it can be tried again")
    forgotten = deployment.start_failures.in_a_row if deployment.start_failures else 0
    rested = replace(deployment, start_failures=None, degraded_reason=None, retry_at=None)
    sentence = f"tried again now, {number_of(forgotten, 'failed start')} forgotten"
    return Effect.to(rested, sentence).with_details(forgotten=forgotten)
