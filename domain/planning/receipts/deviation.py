"""A rollout held against its plan, wave by wave: what came otherwise than planned, in words.

    wave 3 took 41 s, planned 12 to 18 s: route 9f2c1a3b started slowly
    wave 4 did drain 1, planned create 1, drain 1
    wave 5 was not planned: creating 1: a replica died

A plan that is given up, by a person, a judge or a limit, is held against nothing from then on: that is in the outcome.
A tenth of all waves take longer than nine of ten did. So a deviation is what takes half as long again.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile, zip_longest

from domain.model.deployment import Route
from domain.model.states import ROLLING_BACK, RouteStatus, Verdict
from domain.planning.plan.rollout_plan import Plan, PlannedWave, moves_in_words
from domain.planning.receipts.recorded_rollout import RecordedStep
from domain.planning.replica_timings import in_words
from domain.planning.wait_target import route_name

_PATIENCE = 1.5
"""So many times as long as nine of ten is no chance any more."""


def deviations(plan: Plan, steps: Sequence[RecordedStep]) -> Iterator[str]:
    """Yield deviations known by now: the last step's time is not over, and what is still to come is none."""
    steps = list(takewhile(lambda step: not _is_given_up(step, steps[0]), steps))
    waves = plan.waves[: len(steps)]
    for step, following, planned, then in zip_longest(steps, steps[1:], waves, waves[1:]):
        if planned is None:
            if not plan.is_cut:
                yield f"wave {step.number} was not planned: {step.decision['reason']}"
        elif plan.is_certain and planned.does not in (_moves(step), _moves(step, parked=False)):
            yield f"wave {step.number} did {_moves(step) or 'nothing'}, planned {planned.does or 'nothing'}"
        elif following is not None and not _is_asked_for(then) and (said := _slow(step, following, planned)):
            yield said


def _is_given_up(step: RecordedStep, first: RecordedStep) -> bool:
    turned_back = first.deployment.status != step.deployment.status == ROLLING_BACK
    return turned_back or step.decision["verdict"] in {Verdict.GIVE_UP, Verdict.EXPIRED}


def _moves(step: RecordedStep, *, parked: bool = True) -> str:
    """`parked`: say so. What is parked only until the new revision answers was planned to be drained."""
    changes = step.changes
    drained, kept = len(changes.drain_route_ids), len(changes.park_route_ids)
    drained, kept = (drained, kept) if parked else (drained + kept, 0)
    return moves_in_words(changes.created, len(changes.promote_route_ids), drained, kept)


def _is_asked_for(planned: PlannedWave | None) -> bool:
    """Whether it comes when a person or a judge says so: the wave before takes as long as they do."""
    return planned is not None and (planned.waits_for_person or planned.waits_for_judge)


def _slow(step: RecordedStep, following: RecordedStep, planned: PlannedWave) -> str:
    """Empty where it took no longer than it may."""
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
