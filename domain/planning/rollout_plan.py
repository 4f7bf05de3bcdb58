"""Plans a rollout before anything starts: its waves, extremes, bounds and duration.

    runs of the world in which nothing fails, each with other times   ──▶  the waves of one, the times of all

Where the order in which replicas come up and stop makes no difference, the waves are what will happen; where it does
(`is_certain` is False), they are one way that it can go.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.rollout import guard_of
from domain.handlers.check_replica import budget_at_rest
from domain.model.deployment import Deployment
from domain.model.preparation import PreparationState
from domain.model.states import RouteStatus
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Span, Timings, in_words
from domain.planning.run import Course, Wave, course
from domain.planning.simulator import Draw, LearnedFates
from domain.replicas.health import RUNS_WELL
from domain.strategies.budget import Budget
from domain.text.numbers import number_of

_OFTEN = 0.05
"""The share of failed starts from which they deserve a warning."""


def warnings_of(
    subject: Subject, budget: Budget, timings: Timings, typical: Course, others: Sequence[Course]
) -> tuple[str, ...]:
    """The ladder of doubts; empty where there are none."""
    return (
        *_about_size(typical),
        *_about_serving(subject.deployment, budget, typical),
        *_about_health(subject),
        *_about_speaking(subject),
        *_about_people(subject, typical),
        *_about_times(subject.deployment, timings, others),
        *_about_failures(subject.deployment, timings, typical),
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
        yield f"its replicas are called differently: in {subject.speaks}, each as its revision has it"


def _about_people(subject: Subject, typical: Course) -> Iterator[str]:
    deployment = subject.deployment
    if any(wave.waits_for_person for wave in typical.waves):
        yield f"it waits for a person once the new set is healthy: 'rollway promote {deployment.name}'"
    policy = deployment.rollout.policy if deployment.rollout else None
    if policy and any(wave.waits_for_judge for wave in typical.waves):
        yield from EVALUATOR.strategy_of(policy).cautions(policy.spec, deployment.desired_replicas, is_plan=True)
        yield from filter(None, (subject.missing_evidence,))
    if typical.seconds is None and not typical.is_cut:
        yield f"it does not come to rest: {typical.waves[-1].why if typical.waves else 'nothing would look at it'}"


def _about_times(deployment: Deployment, timings: Timings, others: Sequence[Course]) -> Iterator[str]:
    back = [run.back_reason for run in others if run.back_reason is not None]
    if not timings.starts:
        yield f"no start of a replica of {deployment.name} is on record yet: no timing data"
    elif back:
        yield f"in {len(back)} of {len(others)} runs it goes back though no replica fails: {back[0]}"
    unprepared = sum(each.state is not PreparationState.DONE for each in deployment.preparations)
    if unprepared and timings.starts and not timings.preparations:
        yield f"{number_of(unprepared, 'host')} to be prepared first, and none was yet: that time comes on top"


def about_slow_starts(deployment: Deployment, now: datetime, timings: Timings) -> Iterator[str]:
    """Past starts predict the end of a start that has begun; one that takes longer than all of them breaks that."""
    starting = [route for route in deployment.routes if route.status is RouteStatus.PROVISIONING]
    seconds = max(((now - route.created_at).total_seconds() for route in starting), default=0.0)
    if timings.starts and seconds > max(timings.starts):
        yield (
            f"a replica has been starting for {in_words(seconds)} s, and the longest of the last {len(timings.starts)} "
            f"starts took {in_words(max(timings.starts))} s: it takes longer than is told here"
        )


def _about_failures(deployment: Deployment, timings: Timings, typical: Course) -> Iterator[str]:
    if not any(wave.create for wave in typical.waves):
        return
    if timings.never_up:
        yield f"{timings.never_up} of {deployment.name}'s last {timings.revisions} revisions never became healthy"
    if timings.failure_rate >= _OFTEN:
        failed, all_starts = timings.failed_starts, timings.failed_starts + len(timings.starts)
        yield f"{failed} of the last {all_starts} starts of {deployment.name} failed"


_MOST_RUNS, _FEWEST_RUNS = 100, 9
_WORK, _MOST_WORK = 80_000, 800_000
"""Replicas looked at, all runs together, and at the most: a rollout of hundreds of waves is run less often, and of one
that would take longer than half of the most only the first waves are told. Some 7 µs each."""


@dataclass(frozen=True, slots=True)
class PlannedWave(Wave):
    """A wave, with when it begins and how long it takes until the next one; None where nothing is learned."""

    begins: Span | None
    takes: Span | None

    @property
    def does(self) -> str:
        """E.g. "create 1, drain 1"; empty where no replica moves."""
        return moves_in_words(self.create, self.promote, self.drain, self.park)


@dataclass(frozen=True, slots=True)
class Plan:
    """The future while nothing fails. `seconds`: until it is done; None where nothing is learned yet.

    `most_live` stays at or below `ceiling`, `fewest_serving` at or above `floor`; `most_running` counts those too that
    are stopping or parked. `is_certain`: the waves come in this order however long each replica takes. `is_cut`: only
    the first waves are told. `guarantee`: what holds all the way, and when few answer much.
    """

    desired: int
    waves: tuple[PlannedWave, ...]
    most_live: int
    most_running: int
    fewest_serving: int
    ceiling: int
    floor: int
    guarantee: str
    seconds: Span | None
    is_certain: bool
    is_cut: bool
    ends_ready: bool
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        document: dict[str, Any] = _adapter().dump_python(self, mode="json")
        return document


def plan(subject: Subject, now: datetime, timings: Timings, draw: Draw) -> Plan:
    """Plan from the snapshot `subject.deployment`, as the command leaves it that is still to be given."""
    typical = course(subject.deployment, now, LearnedFates(timings=timings), _MOST_WORK / 2)
    others = _others(subject.deployment, now, timings, draw, typical)
    budget, is_known = budget_of(subject.deployment), bool(timings.starts)
    alike = [run for run in others if run.moves == typical.moves]
    times = [run.seconds for run in others if run.seconds is not None and run.back_reason is None]
    seconds = Span.of(times) if is_known and times else None
    return Plan(
        desired=subject.deployment.desired_replicas,
        waves=_planned(typical, alike if is_known else ()),
        most_live=max(run.most_live for run in (typical, *others)),
        most_running=max(run.most_running for run in (typical, *others)),
        fewest_serving=min(run.fewest_serving for run in (typical, *others)),
        ceiling=budget.ceiling,
        floor=budget.keep,
        guarantee="; ".join(filter(None, (guarantee(budget), typical.busiest))),
        seconds=seconds,
        is_certain=len(alike) == len(others) and not typical.is_cut,
        is_cut=typical.is_cut,
        ends_ready=typical.seconds is not None and typical.back_reason is None and typical.end.degraded_reason is None,
        warnings=(
            *warnings_of(subject, budget, timings, typical, others),
            *about_slow_starts(subject.deployment, now, timings),
        ),
    )


def budget_of(deployment: Deployment) -> Budget:
    """The budget that holds all the way: of the rollout in both directions, or outside of one."""
    if deployment.rollout is not None:
        return guard_of(deployment)
    return budget_at_rest(deployment)


def guarantee(budget: Budget) -> str:
    """E.g. "never more than 4 live, never fewer than 2 of 3 serving, unless a replica fails on its own"."""
    most = f"never more than {budget.ceiling} live{' or stopping' if budget.count_stopping else ''}"
    if budget.alone:
        return f"{most}, and old and new never run at the same time"
    if budget.keep == 0:
        return f"{most}; none has to stay, so for a while none may serve"
    return f"{most}, never fewer than {budget.keep} of {budget.desired} serving, unless a replica fails on its own"


def moves_in_words(create: int, promote: int, drain: int, park: int) -> str:
    """E.g. "create 1, drain 1"; empty for none."""
    moves = {"create": create, "promote": promote, "drain": drain, "park": park}
    return ", ".join(f"{word} {count}" for word, count in moves.items() if count)


def _others(deployment: Deployment, now: datetime, timings: Timings, draw: Draw, typical: Course) -> list[Course]:
    """None if the typical run was cut: it has used up the allowed work."""
    work = max(1, typical.work)
    runs = 0 if typical.is_cut else min(_MOST_RUNS, max(_WORK // work, min(_FEWEST_RUNS, _MOST_WORK // work)))
    varied, replicas = _varied(timings), deployment.desired_replicas
    return [
        course(deployment, now, LearnedFates(timings=varied, draw=draw, replicas=replicas), _MOST_WORK / 2)
        for _ in range(runs)
    ]


def _varied(timings: Timings) -> Timings:
    """Give times where nothing is learned that still differ, so that it shows whether their order matters."""
    return replace(timings, starts=timings.starts or (1.0, 2.0), stops=timings.stops or (1.0, 2.0))


def _planned(typical: Course, alike: Sequence[Course]) -> tuple[PlannedWave, ...]:
    return tuple(
        PlannedWave(
            **asdict(wave),
            begins=Span.of([run.begins[place] for run in alike]) if alike else None,
            takes=Span.of([_takes(run, place) for run in alike]) if alike else None,
        )
        for place, wave in enumerate(typical.waves)
    )


def _takes(run: Course, place: int) -> float:
    later = (*run.begins[place + 1 :], run.begins[place] if run.seconds is None else run.seconds)
    return later[0] - run.begins[place]


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Plan]:
    return TypeAdapter(Plan)
