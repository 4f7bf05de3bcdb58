"""Warnings of a plan: in words, for people, before they start."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from domain.cycle.evaluator import EVALUATOR
from domain.model.deployment import Deployment
from domain.model.states import RouteStatus
from domain.planning.plan.plan_input import Subject
from domain.planning.plan.run import Course
from domain.planning.replica_timings import Learned, in_words
from domain.replicas.health import RUNS_WELL
from domain.strategies.budget import Budget

_OFTEN = 0.05
"""From this share of failed starts on they are worth a warning."""


def warnings_of(
    subject: Subject, budget: Budget, learned: Learned, typical: Course, others: Sequence[Course]
) -> tuple[str, ...]:
    """The ladder of doubts; empty where there are none."""
    return (
        *_about_size(typical),
        *_about_serving(subject.deployment, budget, typical),
        *_about_health(subject),
        *_about_speaking(subject),
        *_about_people(subject, typical),
        *_about_times(subject.deployment, learned, others),
        *_about_failures(subject.deployment, learned, typical),
    )


def _about_size(typical: Course) -> Iterator[str]:
    if typical.is_cut:
        yield f"only its first {len(typical.waves)} waves are told: it is too large to be foreseen to its end"


def _about_serving(deployment: Deployment, budget: Budget, typical: Course) -> Iterator[str]:
    n, served = deployment.desired_replicas, any(route.is_serving for route in deployment.routes)
    if n == 0:
        yield "0 replicas are wanted: it completes without starting one, and proves nothing about the revision"
    elif budget.alone and served:
        yield "recreate stops every old replica before the first new one starts: nothing serves in between"
    elif budget.keep == 0 and served and typical.fewest_serving == 0:
        yield "one replica and max_surge 0: it is taken away before the new one starts, and nothing serves in between"


def _about_health(subject: Subject) -> Iterator[str]:
    if not subject.has_health_check:
        yield f"the revision has no health check: a replica counts as healthy once it has run for {RUNS_WELL.seconds} s"


def _about_speaking(subject: Subject) -> Iterator[str]:
    if subject.speaks:
        yield f"its replicas are asked otherwise than those that run: in {subject.speaks}, each as its revision has it"


def _about_people(subject: Subject, typical: Course) -> Iterator[str]:
    deployment = subject.deployment
    if any(wave.waits_for_person for wave in typical.waves):
        yield f"it waits for a person once the new set is healthy: 'rollway promote {deployment.name}'"
    policy = deployment.rollout.policy if deployment.rollout else None
    if policy and any(wave.waits_for_judge for wave in typical.waves):
        yield from EVALUATOR.strategy_of(policy).cautions(policy.spec, deployment.desired_replicas, ahead=True)
        yield from filter(None, (subject.missing_evidence,))
    if typical.seconds is None and not typical.is_cut:
        yield f"it does not come to rest: {typical.waves[-1].why if typical.waves else 'nothing would look at it'}"


def _about_times(deployment: Deployment, learned: Learned, others: Sequence[Course]) -> Iterator[str]:
    back = [run.back_reason for run in others if run.back_reason is not None]
    if not learned.starts:
        yield f"no start of a replica of {deployment.name} is on record yet: how long it takes cannot be said"
    elif back:
        yield f"in {len(back)} of {len(others)} runs it goes back though no replica fails: {back[0]}"


def about_slow_starts(deployment: Deployment, now: datetime, learned: Learned) -> Iterator[str]:
    """What has begun is foreseen to end by what the past took: nothing of that is true of a start that takes longer."""
    starting = [route for route in deployment.routes if route.status is RouteStatus.PROVISIONING]
    seconds = max(((now - route.created_at).total_seconds() for route in starting), default=0.0)
    if learned.starts and seconds > max(learned.starts):
        yield (
            f"a replica has been starting for {in_words(seconds)} s, and the longest of the last {len(learned.starts)} "
            f"starts took {in_words(max(learned.starts))} s: it takes longer than is told here"
        )


def _about_failures(deployment: Deployment, learned: Learned, typical: Course) -> Iterator[str]:
    if not any(wave.create for wave in typical.waves):
        return
    if learned.never_up:
        yield f"of the last {learned.revisions} revisions of {deployment.name} {learned.never_up} never came up"
    if learned.failure_rate >= _OFTEN:
        failed, all_starts = learned.failed_starts, learned.failed_starts + len(learned.starts)
        yield f"{failed} of the last {all_starts} starts of {deployment.name} failed"
