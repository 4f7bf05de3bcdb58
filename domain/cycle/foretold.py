"""Finishes what decisions leave behind: whoever writes these values copies them, and asks nothing more."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from domain.cycle.after import back_reason_of, deployment_after, outcome_of, rollout_after, turns_clock
from domain.cycle.history import HistoryKey, history_key
from domain.cycle.recording import decision_json, inputs_json
from domain.cycle.transitions import ClassifiedDecision
from domain.model.deployment import Deployment, Rollout
from domain.model.states import RolloutOutcome, TrafficStatus, Verdict


@dataclass(frozen=True, slots=True)
class Foretold:
    """The traces that one decision leaves behind.

        a wait               nothing but its reason and the next look; the rollout where its clock stops or goes on
        a step of many       a record of the timeline, and the rollout
        a move               these, and the deployment: its next snapshot, with the routes from before

    `remembered_as`: the key of the record as text, under which the next record may merge into it. `waits_for`: what a
    person must type before the rollout goes on; None where nobody is waited for.
    """

    decision: ClassifiedDecision
    key: HistoryKey | None = None
    remembered_as: str = ""
    deployment: Deployment | None = None
    rollout: Rollout | None = None
    outcome: RolloutOutcome | None = None
    back_reason: str | None = None
    waits_for: str | None = None


class NewRoute(NamedTuple):
    """A replica that a decision wants."""

    deployment_id: UUID
    revision_id: UUID
    rollout_id: UUID | None
    traffic: TrafficStatus


class StepRecord(NamedTuple):
    """A numbered step of a rollout, with all that is needed to decide it again, as JSON text."""

    rollout_id: UUID
    number: int
    verdict: Verdict
    inputs: bytes
    decision: bytes


def new_routes(changing: Iterable[ClassifiedDecision]) -> list[NewRoute]:
    """The replicas that decisions want, one by one, in the order of the decisions."""
    return [
        NewRoute(before.id, spec.revision_id, before.rollout.id if before.rollout else None, spec.traffic)
        for decision in changing
        for before in (decision.deployment,)
        for spec in decision.changes.rollout_specs
        for _ in range(spec.count)
    ]


def foretold(decisions: Iterable[ClassifiedDecision], phase: str, now: datetime) -> list[Foretold]:
    """Return what each of these decisions leaves, in their order. `phase`: the name of the handler that made them."""
    return [
        _changed(decision, phase, now) if decision.changes_anything else _waited(decision, now)
        for decision in decisions
    ]


def steps_of(left: Iterable[Foretold], now: datetime) -> list[StepRecord]:
    """The step of each decision that took its rollout further, or back."""
    return [
        StepRecord(
            each.rollout.id,
            each.rollout.steps,
            each.decision.verdict,
            inputs_json(each.decision.deployment, now),
            decision_json(each.decision),
        )
        for each in left
        if each.decision.is_step and each.rollout
    ]


def _waited(decision: ClassifiedDecision, now: datetime) -> Foretold:
    rollout = rollout_after(decision, now) if turns_clock(decision) else None
    return Foretold(decision, rollout=rollout, waits_for=decision.awaited_verb)


def _changed(decision: ClassifiedDecision, phase: str, now: datetime) -> Foretold:
    key, rollout = history_key(phase, decision), rollout_after(decision, now)
    return Foretold(
        decision,
        key,
        str(key),
        None if decision.stays else deployment_after(decision, rollout, now),
        rollout,
        outcome_of(decision),
        back_reason_of(decision),
        decision.awaited_verb,
    )
