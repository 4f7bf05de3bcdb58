"""Reads a rollout's recorded steps: live and serving replicas at each, and the waits between."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise, takewhile, zip_longest
from typing import Any, Self

from domain.cycle.effects import after, routes_after
from domain.cycle.recording import changes_from_json, inputs_from_json
from domain.cycle.rollout import guard_of
from domain.cycle.transitions import ClassifiedDecision
from domain.handlers.dispatch import as_recorded, cycle, decided_again, is_same_decision, records_a_failed_write
from domain.model.decision import RouteChanges, WaitsFor
from domain.model.deployment import Deployment, Route
from domain.model.picture import picture
from domain.model.states import ROLLING_BACK, RouteStatus, Verdict
from domain.planning.replica_timings import in_words
from domain.planning.rollout_plan import Plan, PlannedWave, moves_in_words
from domain.planning.run import Stand
from domain.planning.wait_explanation import route_name, waits_of

_HOLDING = frozenset({"pause", "resume", "promote"})
"""The commands of a person that hold a rollout, or end its wait for one."""


@dataclass(frozen=True)
class RecordedStep:
    """A recorded step: its snapshot, the stored decision, and its changes of routes.

    Not the stored snapshot itself: of a rollout of thousands of replicas each step has one.
    """

    number: int
    phase: str
    at: datetime
    decision: dict[str, Any]
    deployment: Deployment
    changes: RouteChanges

    @classmethod
    def of(cls, number: int, phase: str, at: datetime, inputs: Mapping[str, Any], decision: dict[str, Any]) -> Self:
        return cls(number, phase, at, decision, inputs_from_json(inputs)[0], changes_from_json(decision))

    @cached_property
    def again(self) -> ClassifiedDecision:
        """The decision that this release makes of it."""
        return decided_again(self.deployment, self.at, self.phase)


@dataclass(frozen=True, slots=True)
class RecordedAct:
    """A wish of a person or service during the rollout, with its reason."""

    at: datetime
    actor: str
    what: str
    said: str


@dataclass(frozen=True, slots=True)
class Extremes:
    """The highest and lowest counts before and after all looks that changed something.

    `is_ceiling_kept`: no creation went beyond what held then; `is_floor_kept`: no drain of ours fell below it.
    """

    most_live: int
    most_stopping: int
    most_live_and_stopping: int
    fewest_serving: int
    is_ceiling_kept: bool
    is_floor_kept: bool


def extremes(steps: Sequence[RecordedStep]) -> Extremes | None:
    """None of a rollout that has no step."""
    if not steps:
        return None
    moments = [
        (step, Stand.of(routes), Stand.of(routes_after(routes, step.changes, step.at)))
        for step in steps
        for routes in (step.deployment.routes,)
    ]
    stands = [stand for _, before, later in moments for stand in (before, later)]
    return Extremes(
        most_live=max(stand.live for stand in stands),
        most_stopping=max(stand.stopping for stand in stands),
        most_live_and_stopping=max(stand.live + stand.stopping for stand in stands),
        fewest_serving=min(stand.serving for stand in stands),
        is_ceiling_kept=all(_keeps_ceiling(step, later) for step, _, later in moments),
        is_floor_kept=all(
            later.serving >= min(before.serving, guard_of(step.deployment).keep) for step, before, later in moments
        ),
    )


def waves(steps: Sequence[RecordedStep], ended_at: datetime | None) -> list[dict[str, Any]]:
    """Each step: its time, picture, changes and reason, and the seconds until the next one."""
    ends = [step.at for step in steps[1:]] + [ended_at]
    return [_wave(step, steps[0].at, until) for step, until in zip(steps, ends, strict=False)]


def waits(steps: Sequence[RecordedStep], acts: Sequence[RecordedAct]) -> Iterator[dict[str, Any]]:
    """Yield the wait between two steps, as decided from the state that the first of them left.

    Where a person ended the wait, or began one, it was the person who was waited for.
    """
    for step, following in pairwise(steps):
        snapshot = after(step.again, step.at)
        decision = cycle(snapshot, step.at)
        acts_between = [act for act in acts if step.at < act.at <= following.at and act.what in _HOLDING]
        if decision.verdict is Verdict.SKIPPED:
            waits = waits_of(decision)
            yield {
                "after_wave": step.number,
                "seconds": _seconds(following.at - step.at),
                "waits_for": str(WaitsFor.PERSON if acts_between else waits.kind),
                "blocked_by": waits.blocked_by,
                "reason": "; ".join((decision.reason, *(f"{act.what} by {act.actor}" for act in acts_between))),
            }


def replayed(steps: Sequence[RecordedStep]) -> dict[str, Any]:
    """Count the steps that are decided today as they were then; `refused`: Postgres did not write the decision."""
    differing, refused = [], 0
    for step in steps:
        if is_same_decision(step.decision, as_recorded(step.again)):
            continue
        if records_a_failed_write(step.deployment.phase_attempts, step.decision):
            refused += 1
        else:
            differing.append(step.number)
    equal = len(steps) - refused - len(differing)
    return {"steps": len(steps), "equal": equal, "refused": refused, "differing": differing}


def _wave(step: RecordedStep, began: datetime, until: datetime | None) -> dict[str, Any]:
    changes, deployment = step.changes, step.deployment
    return {
        "number": step.number,
        "at": step.at.isoformat(),
        "begins_seconds": _seconds(step.at - began),
        "took_seconds": None if until is None else _seconds(until - step.at),
        "phase": step.phase,
        "verdict": step.decision["verdict"],
        "picture": picture(deployment.routes, deployment.current_revision_id, deployment.deploying_revision_id),
        "create": changes.created + len(changes.woken),
        "drain": len(changes.drain_route_ids),
        "promote": len(changes.promote_route_ids),
        "park": len(changes.park_route_ids),
        "why": step.decision["reason"],
    }


def _keeps_ceiling(step: RecordedStep, later: Stand) -> bool:
    if not step.changes.created:
        return True
    budget = guard_of(step.deployment)
    return later.live + (later.stopping if budget.count_stopping else 0) <= budget.ceiling


def _seconds(span: timedelta) -> float:
    return round(span.total_seconds(), 3)


_PATIENCE = 1.5
"""This multiple of the p90 is no chance any more."""


def deviations(plan: Plan, steps: Sequence[RecordedStep]) -> Iterator[str]:
    """Compare a rollout with its plan, wave by wave. The last step and what is still to come count for nothing yet.

    wave 3 took 41 s, planned 12 to 18 s: route 9f2c1a3b started slowly
    wave 4 did drain 1, planned create 1, drain 1
    wave 5 was not planned: creating 1: a replica died

    Once a person, a judge or a limit gives the plan up, nothing is compared with it: the outcome says so. A tenth of
    all waves take longer than nine of ten did, so a deviation is half as long again.
    """
    steps = list(takewhile(lambda step: not _is_given_up(step, steps[0]), steps))
    waves = plan.waves[: len(steps)]
    for step, following, planned, then in zip_longest(steps, steps[1:], waves, waves[1:]):
        if planned is None:
            if not plan.is_cut:
                yield f"wave {step.number} was not planned: {step.decision['reason']}"
        elif plan.is_certain and planned.does not in (_moves(step), _moves(step, parked=False)):
            yield f"wave {step.number} did {_moves(step) or 'nothing'}, planned {planned.does or 'nothing'}"
        elif following is not None and not _is_asked_for(then) and (sentence := _slow(step, following, planned)):
            yield sentence


def _is_given_up(step: RecordedStep, first: RecordedStep) -> bool:
    turned_back = first.deployment.status != step.deployment.status == ROLLING_BACK
    return turned_back or step.decision["verdict"] in {Verdict.GIVE_UP, Verdict.EXPIRED}


def _moves(step: RecordedStep, *, parked: bool = True) -> str:
    """`parked`: say so. What is parked only until the new revision answers was planned to be drained."""
    changes = step.changes
    drained, parked_count = len(changes.drain_route_ids), len(changes.park_route_ids)
    drained, parked_count = (drained, parked_count) if parked else (drained + parked_count, 0)
    return moves_in_words(changes.created + len(changes.woken), len(changes.promote_route_ids), drained, parked_count)


def _is_asked_for(planned: PlannedWave | None) -> bool:
    """Whether it comes when a person or a judge says so: the wave before takes as long as they do."""
    return planned is not None and (planned.waits_for_person or planned.waits_for_judge)


def _slow(step: RecordedStep, following: RecordedStep, planned: PlannedWave) -> str:
    """A sentence where the wave took longer than planned; else empty."""
    took = (following.at - step.at).total_seconds()
    if planned.takes is None or took <= _PATIENCE * max(1.0, planned.takes.p90):
        return ""
    slowest = _last_to_come_up(step, following)
    whose = f": route {route_name(slowest)} started slowly" if slowest else ""
    return f"wave {step.number} took {in_words(took)} s, planned {planned.takes}{whose}"


def _last_to_come_up(step: RecordedStep, following: RecordedStep) -> Route | None:
    came_up = [
        route
        for route in following.deployment.routes
        if route.status is RouteStatus.HEALTHY and step.at <= route.created_at <= route.status_changed_at
    ]
    return max(came_up, key=lambda route: route.status_changed_at, default=None)
