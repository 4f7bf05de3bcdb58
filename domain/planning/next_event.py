"""Finds what ends a wait by itself, if nothing else does: the decision is asked at each time that it names."""

from dataclasses import dataclass, replace
from datetime import datetime

from domain.cycle.effects import after, turns_back, with_clock_running
from domain.cycle.transitions import ClassifiedDecision
from domain.handlers.cycle import cycle, handler_of
from domain.model.bounds import passed
from domain.model.decision import Waits, WaitsFor
from domain.model.deployment import Deployment
from domain.model.states import Lifecycle, Verdict

NEVER = "no clock ends this wait"
MOST_LOOKS, MOST_AT_REST = 2000, 20
"""So many looks in a row that change nothing are asked for: a judge looks each second, until the timeout."""


@dataclass(frozen=True, slots=True)
class End:
    """`what` happens `at` that time; None: no time is set."""

    at: datetime | None
    what: str


def waits_of(decision: ClassifiedDecision) -> Waits:
    """Return what a wait is for. Raises ValueError for a decision that changes something."""
    if decision.waits is None:
        raise ValueError(f"{decision.deployment.name} does not wait: {decision.reason}")
    return decision.waits


def end_of(decision: ClassifiedDecision, now: datetime) -> End:
    """The first look after this one, which found a wait `now`, that finds something else."""
    waits = waits_of(decision)
    if waits.kind is WaitsFor.HOLD:
        return End(waits.until, "it is looked at again")
    if waits.kind is WaitsFor.PERSON and decision.clock_stopped:
        return End(None, "no clock of the rollout runs until then")
    first: datetime | None = None
    at: datetime | None = now
    for _ in range(MOST_LOOKS if decision.deployment.rollout else MOST_AT_REST):
        left, before, at = after(decision, at or now), decision, _next_look(decision)
        if at is None:
            return End(None, NEVER)
        first, decision = first or at, cycle(left, at)
        if decision.changes_anything or _stands(decision, before):
            return End(at, _comes_to(left, decision, at))
    if decision.deployment.rollout is not None:
        return End(None, NEVER)  # a judge looks on, also on a way back that no deadline ends
    return End(first, "it is looked at again")


def _next_look(decision: ClassifiedDecision) -> datetime | None:
    return (decision.waits and decision.waits.until) or decision.due_at


def _stands(decision: ClassifiedDecision, before: ClassifiedDecision) -> bool:
    """Whether somebody is waited for from here on who was not before."""
    return waits_of(decision).kind is WaitsFor.PERSON is not waits_of(before).kind


def _comes_to(deployment: Deployment, decision: ClassifiedDecision, now: datetime) -> str:
    if decision.verdict is Verdict.SKIPPED:
        return f"a person is waited for: {waits_of(decision).words}"
    because = _deadline(deployment, now) if decision.verdict is Verdict.EXPIRED else decision.reason
    if turns_back(decision):
        return f"the rollout goes back: {because}"
    if decision.verdict in (Verdict.EXPIRED, Verdict.GIVE_UP):
        return f"it is called degraded and tried again later: {because}"
    if decision.verdict is Verdict.SUCCESS:
        return f"{'scaling begins' if decision.to.lifecycle is Lifecycle.SCALING else 'it completes'}: {because}"
    return f"the next step: {because}"


def _deadline(deployment: Deployment, now: datetime) -> str:
    rollout = deployment.rollout
    running = replace(deployment, rollout=with_clock_running(rollout, now)) if rollout else deployment
    deadline = passed(handler_of(deployment).bounds(running), now)
    return f"{deadline.what} has passed" if deadline else ""
