"""Tries again for `retry`: a rollout begins once more, or failed starts are forgotten, so that all is tried now."""

from dataclasses import replace

from domain.cycle.rollout import NoRolloutError
from domain.model.deployment import Deployment
from domain.model.states import ROLLING_BACK, Lifecycle, RolloutOutcome
from domain.steering.activation import RUN_ALREADY, ActivationRequest, activate
from domain.steering.command_effect import Asking, Steered
from domain.strategies.backoff import is_proven
from domain.text.errors import WrongStateError
from domain.text.numbers import number_of


def retry(
    deployment: Deployment,
    last: ActivationRequest | None,
    outcome: RolloutOutcome | None,
    asking: Asking,
    *,
    now: bool = False,
) -> Steered:
    """Begin the last rollout once more, an undo as an undo. `outcome` is None while it runs.

    now                                                      -> what failed is tried again at once, nothing begins
    there was none, or it ended otherwise than rolled back   -> likewise; error where nothing has failed
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
        return try_now(deployment) if tired else Steered.unchanged(deployment)
    if last is None or has_none:
        raise NoRolloutError(
            f"the last rollout of {deployment.name} is {outcome or 'none'}; "
            "only one that was rolled back can be retried, and no start has failed that is tried again later",
            deployment=deployment.name,
        )
    steered = activate(deployment, replace(last, supersede=deployment.status == ROLLING_BACK), asking)
    if steered.details["activation"] in RUN_ALREADY:
        return steered
    return replace(steered, deployment=replace(steered.deployment, start_failures=None))


def try_now(deployment: Deployment) -> Steered:
    """Forget what failed: the pauses end, and the next look starts all that is missing."""
    if deployment.status.lifecycle in (Lifecycle.DESTROYING, Lifecycle.DESTROYED):
        raise WrongStateError.of_leaving(deployment.name, deployment.status, "it can be tried again")
    forgotten = deployment.start_failures.in_a_row if deployment.start_failures else 0
    rested = replace(deployment, start_failures=None, degraded_reason=None, retry_at=None)
    said = f"tried again now, {number_of(forgotten, 'failed start')} forgotten"
    return Steered.to(rested, said).with_details(forgotten=forgotten)
