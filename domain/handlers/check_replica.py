"""The handlers of a ready deployment: soon after an event, and every 30 s for changes without one."""

from dataclasses import replace
from datetime import datetime, timedelta

from domain.autoscaling.scaling_decision import Quiet, evaluate_rules, judge_rules
from domain.cycle.transitions import STAY, DeploymentStatusTransitions, Transition
from domain.handlers.base import DeploymentHandler
from domain.model.decision import Decision, Waits, WaitsFor
from domain.model.deployment import Deployment
from domain.model.lifecycle_events import DeploymentLifecycleType, DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model.states import DeploymentLifecycleStatus, Lifecycle, Verdict
from domain.replicas.health import is_answering
from domain.strategies.budget import Buckets, Budget, resting_budget
from domain.strategies.converge import proven_at, unproven
from domain.strategies.messages import for_replicas
from domain.text.numbers import number_of

RULES_SHOWN_SECONDS = 30
"""The age after which the reason of a deployment with rules is renewed. It shows missing and old values."""


class CheckReplicaHandler(DeploymentHandler):
    """check_replica: a ready deployment starts scaling if its replicas are not what they should be.

    scaling gave up, and it is too early to try again                    -> wait until then
    the count is wrong, a replica runs another revision, is out of
    traffic, misplaced, or has been sick for too long                    -> scaling
    all is well, but the deployment is still marked as degraded          -> scaling, which removes the mark; for short
                                                                            lives once a minute is over without one
    an autoscaling rule fires                                            -> scaling, to the count of the rule
    otherwise                                                            -> wait; look again when a sick replica
                                                                            has been sick for too long
    """

    name = "check_replica"
    event = DoDeploymentLifecycleEvent(DeploymentLifecycleType.CHECK_REPLICA)
    cadence = DeploymentTaskSpec(short=5, long=30)
    lock_id = "check_replica"
    targets = frozenset({DeploymentLifecycleStatus(Lifecycle.READY)})
    transitions = DeploymentStatusTransitions(
        success=Transition(DeploymentLifecycleStatus(Lifecycle.SCALING)), expired=STAY, give_up=STAY
    )

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        decision = drift(deployment, now)
        if decision.verdict is Verdict.SUCCESS or not deployment.autoscaling.rules or _was_given_up(deployment, now):
            return decision
        return _autoscaled(deployment, decision, now)


def _autoscaled(deployment: Deployment, decision: Decision, now: datetime) -> Decision:
    """The new count of the rule that fires; otherwise the wait, with the result of each rule."""
    autoscaling = deployment.autoscaling
    arguments = (autoscaling.rules, autoscaling.metrics, deployment.desired_replicas, autoscaling.last_at, now)
    if (scaling := evaluate_rules(*arguments)) is not None:
        return replace(Decision.success(scaling.reason), desired_replicas=scaling.desired)
    quiet = [rule for rule in judge_rules(*arguments) if isinstance(rule, Quiet)]
    times = (decision.recheck_at, *(rule.until for rule in quiet), now + timedelta(seconds=RULES_SHOWN_SECONDS))
    recheck_at = min(at for at in times if at is not None)
    if decision.waits is None:
        return decision
    words = "; ".join((decision.waits.words, *dict.fromkeys(rule.reason for rule in quiet)))
    return replace(decision, recheck_at=recheck_at).waiting_for(replace(decision.waits, words=words))


def _was_given_up(deployment: Deployment, now: datetime) -> bool:
    return deployment.retry_at is not None and now < deployment.retry_at


def drift(deployment: Deployment, now: datetime) -> Decision:
    """A success with the needed repair as its reason; a wait if none is needed."""
    if _was_given_up(deployment, now):
        return _degraded(deployment, deployment.retry_at)
    if deployment.current_revision_id is None:
        raise ValueError(f"{deployment.name} is ready without a revision")
    buckets = Buckets.of(deployment.routes, deployment.current_revision_id, now)
    if off := _off(buckets, len(buckets.replaceable(now)), deployment.desired_replicas):
        return Decision.success(off)
    next_at, budget = buckets.next_change_at(now), budget_at_rest(deployment)
    if buckets.sick:
        answering = sum(map(is_answering, buckets.sick))
        but = f", {answering} of them answering callers" if answering else ""
        sentence = f"{len(buckets.sick)} unhealthy{but}, replaced unless back soon"
        return Decision.wait(for_replicas(sentence, buckets, budget, now), next_at)
    if deployment.degraded_reason is not None:
        if mark := unproven(deployment, now):
            return _degraded(deployment, min(filter(None, (next_at, proven_at(mark[1])))))
        return Decision.success("nothing is off any more, so the mark can go")
    sentence = f"{len(buckets.ready)} of {number_of(deployment.desired_replicas, 'replica')} healthy"
    if buckets.starting:
        return Decision.wait(for_replicas(sentence, buckets, budget, now), next_at)
    return Decision.wait(Waits(WaitsFor.NOTHING, sentence), next_at)


def _off(buckets: Buckets, replaceable: int, desired: int) -> str:
    """The repair that is needed, in words; empty if none."""
    if buckets.foreign:
        return f"{len(buckets.foreign)} replicas run another revision"
    sound = len(buckets.target) - replaceable
    if sound != desired or replaceable:
        return f"{number_of(sound, 'replica')}, {desired} wanted"
    if idle := buckets.idle():
        return f"{number_of(len(idle), 'replica')} out of traffic"
    misplaced = sum(route.is_misplaced for route in buckets.target)
    return f"{number_of(misplaced, 'replica')} on drained hosts" if misplaced else ""


def _degraded(deployment: Deployment, until: datetime | None) -> Decision:
    return Decision.wait(Waits(WaitsFor.TIME, f"degraded: {deployment.degraded_reason}"), until)


def budget_at_rest(deployment: Deployment) -> Budget:
    """The budget for replacing replicas outside a rollout; those of another revision never block it.

    Without surge a misplaced replica goes before the one that replaces it comes: one less serves meanwhile.
    """
    n, current, live = deployment.desired_replicas, deployment.current_revision_id, deployment.active_routes
    may_surge = deployment.may_surge or any(route.revision_id != current for route in live)
    counts = deployment.count_stopping or bool(deployment.devices)
    budget = resting_budget(n, count_stopping=counts, may_surge=may_surge)
    if may_surge or not n or not any(route.is_misplaced for route in live):
        return budget
    return replace(budget, keep=n - 1)


def is_settled(deployment: Deployment, now: datetime) -> bool:
    """Whether a deployment with a revision is ready, and nothing of it is off, sick or on its way."""
    waits = drift(deployment, now).waits if deployment.status.lifecycle is Lifecycle.READY else None
    return waits is not None and waits.kind is WaitsFor.NOTHING


class ReconcileHandler(DeploymentHandler):
    """reconcile: every 30 s it finds what check_replica missed because no event told it, and what scaling gave up.

    replicas are wrong, and a try is allowed    -> scaling
    otherwise                                   -> wait
    """

    name = "reconcile"
    event = DoDeploymentLifecycleEvent(DeploymentLifecycleType.RECONCILE)
    cadence = DeploymentTaskSpec(short=None, long=30)
    lock_id = None
    targets = frozenset({DeploymentLifecycleStatus(Lifecycle.READY)})
    transitions = DeploymentStatusTransitions(
        success=Transition(DeploymentLifecycleStatus(Lifecycle.SCALING)), expired=STAY, give_up=STAY
    )

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        return drift(deployment, now)
