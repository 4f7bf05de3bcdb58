"""Reads a rollout's recorded steps: how many were live and serving at each, and what was waited for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

from domain.cycle.effects import after, routes_after
from domain.cycle.recording import changes_from_json, inputs_from_json
from domain.cycle.rollout import guard_of
from domain.cycle.transitions import ClassifiedDecision
from domain.handlers.cycle import cycle
from domain.handlers.decision_replay import as_recorded, decided_again, is_same_decision, records_a_failed_write
from domain.model.decision import RouteChanges, WaitsFor
from domain.model.deployment import Deployment
from domain.model.picture import picture
from domain.model.states import Verdict
from domain.planning.next_event import waits_of
from domain.planning.plan.run import Stand

_HOLDING = frozenset({"pause", "resume", "promote"})
"""What a person asks for who holds a rollout, or was waited for."""


@dataclass(frozen=True)
class RecordedStep:
    """A step on record: the snapshot that it was decided from, the decision as it is stored, and what it did to routes.

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
        """As it is stored."""
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
    """The most and the fewest of all looks that changed something, before and after each.

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
    moments = [(step, Stand.of(step.deployment.routes), _stand_after(step)) for step in steps]
    seen = [stand for _, before, later in moments for stand in (before, later)]
    return Extremes(
        most_live=max(stand.live for stand in seen),
        most_stopping=max(stand.stopping for stand in seen),
        most_live_and_stopping=max(stand.live + stand.stopping for stand in seen),
        fewest_serving=min(stand.serving for stand in seen),
        is_ceiling_kept=all(_keeps_ceiling(step, later) for step, _, later in moments),
        is_floor_kept=all(_keeps_floor(step, before, later) for step, before, later in moments),
    )


def waves(steps: Sequence[RecordedStep], ended_at: datetime | None) -> list[dict[str, Any]]:
    """Each step: when, from which picture, what it did and why, and how long it was until the next one, in seconds."""
    ends = [step.at for step in steps[1:]] + [ended_at]
    return [_wave(step, steps[0].at, until) for step, until in zip(steps, ends, strict=False)]


def waits(steps: Sequence[RecordedStep], acts: Sequence[RecordedAct]) -> Iterator[dict[str, Any]]:
    """Yield what was waited for between two steps, as decided from what the first of them left behind.

    Where a person ended the wait, or began one, it was the person who was waited for.
    """
    for step, following in pairwise(steps):
        left = after(step.again, step.at)
        found = cycle(left, step.at)
        steered = [act for act in acts if step.at < act.at <= following.at and act.what in _HOLDING]
        if found.verdict is Verdict.SKIPPED:
            waits = waits_of(found)
            yield {
                "after_wave": step.number,
                "seconds": _seconds(following.at - step.at),
                "waits_for": str(WaitsFor.PERSON if steered else waits.kind),
                "blocked_by": waits.blocked_by,
                "reason": "; ".join((found.reason, *(f"{act.what} by {act.actor}" for act in steered))),
            }


def replayed(steps: Sequence[RecordedStep]) -> dict[str, Any]:
    """Count the steps that are decided today as they were then; `refused`: Postgres did not write what was decided."""
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
        "create": changes.created,
        "drain": len(changes.drain_route_ids),
        "promote": len(changes.promote_route_ids),
        "park": len(changes.park_route_ids),
        "why": step.decision["reason"],
    }


def _stand_after(step: RecordedStep) -> Stand:
    return Stand.of(routes_after(step.deployment.routes, step.changes, step.at))


def _keeps_ceiling(step: RecordedStep, later: Stand) -> bool:
    if not step.changes.created:
        return True
    budget = guard_of(step.deployment)
    return later.live + (later.stopping if budget.count_stopping else 0) <= budget.ceiling


def _keeps_floor(step: RecordedStep, before: Stand, later: Stand) -> bool:
    return later.serving >= min(before.serving, guard_of(step.deployment).keep)


def _seconds(span: timedelta) -> float:
    return round(span.total_seconds(), 3)
