"""All that is written of decisions, as finished values: snapshots, steps, and records for people."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from domain.cycle.effects import back_reason_of, deployment_after, rollout_after
from domain.cycle.recording import decision_json, inputs_as_json, inputs_json
from domain.cycle.step_deltas import SMALL, KeptStep, changes_kept, last_of_each
from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.model.deployment import Deployment, Rollout
from domain.model.states import RolloutOutcome, TrafficStatus, Verdict


@dataclass(frozen=True, slots=True)
class HistoryKey:
    """Records with equal keys, one after the other, are merged: attempts + 1, first time kept, last message kept.

    A deployment's row remembers the key of its last record as text.
    """

    rollout_id: UUID | None
    phase: str
    result: Verdict
    error_code: str | None
    target: str

    def __str__(self) -> str:
        """Equal for equal keys, and for no others."""
        return f"{self.rollout_id or '-'} {self.phase} {self.result} {self.error_code or '-'} {self.target}"


def history_key(phase: str, classified: ClassifiedDecision) -> HistoryKey:
    """Return what this decision is remembered as."""
    rollout = classified.deployment.rollout
    return HistoryKey(
        rollout_id=rollout.id if rollout else None,
        phase=phase,
        result=classified.verdict,
        error_code=_error_code(classified),
        target=str(classified.to),
    )


def _error_code(classified: ClassifiedDecision) -> str | None:
    """The exception's type for an error, the hardened verdict otherwise."""
    match classified.verdict:
        case Verdict.ERROR:
            return classified.reason.partition(":")[0]
        case Verdict.EXPIRED | Verdict.GIVE_UP:
            return str(classified.verdict)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class DecisionEffects:
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
    """A numbered step of a rollout, with all that is needed to decide it again, as JSON text.

    `whole_step`: the step whose inputs are whole, on which this one's build; None where these are.
    """

    rollout_id: UUID
    number: int
    verdict: Verdict
    inputs: bytes
    decision: bytes
    whole_step: int | None


def new_routes(changing: Iterable[ClassifiedDecision]) -> list[NewRoute]:
    """The replicas that decisions want, one by one, in the order of the decisions."""
    return [
        NewRoute(before.id, spec.revision_id, before.rollout.id if before.rollout else None, spec.traffic)
        for decision in changing
        for before in (decision.deployment,)
        for spec in decision.changes.rollout_specs
        for _ in range(spec.count)
    ]


def decision_effects(decisions: Iterable[ClassifiedDecision], phase: str, now: datetime) -> list[DecisionEffects]:
    """Return what each of these decisions leaves, in their order. `phase`: the name of the handler that made them."""
    return [
        _change_effects(decision, phase, now) if decision.changes_anything else _waited(decision, now)
        for decision in decisions
    ]


def steps_to_build_on(decisions: Iterable[ClassifiedDecision]) -> list[tuple[UUID, int]]:
    """The last step of each large rollout that takes another one: its rollout and its number."""
    return [
        (rollout.id, rollout.steps)
        for decision in decisions
        if len(decision.deployment.routes) > SMALL and decision.is_step
        if (rollout := decision.deployment.rollout) and rollout.steps
    ]


def steps_of(
    effects: Iterable[DecisionEffects], now: datetime, kept_steps: Iterable[KeptStep] = ()
) -> list[StepRecord]:
    """The step of each decision that took its rollout further, or back. `kept_steps`: the steps that they build on."""
    built = last_of_each(kept_steps)
    return [
        _step(each.decision, each.rollout, now, built.get(each.rollout.id) if built else None)
        for each in effects
        if each.decision.is_step and each.rollout
    ]


def turns_clock(decision: ClassifiedDecision) -> bool:
    """Whether this decision stops the deadlines of the rollout, or lets them run again."""
    rollout = decision.deployment.rollout
    return rollout is not None and decision.clock_stopped is (rollout.clock_stopped_at is None)


def outcome_of(decision: ClassifiedDecision) -> RolloutOutcome | None:
    """Say how this decision ends the rollout; None if it does not."""
    match decision.revision:
        case RevisionMove.SWAP:
            return RolloutOutcome.COMPLETED
        case RevisionMove.CLEAR:
            return RolloutOutcome.ROLLED_BACK
        case RevisionMove.KEEP:
            return None


def _step(decision: ClassifiedDecision, rollout: Rollout, now: datetime, last: KeptStep | None) -> StepRecord:
    saw, changes = decision.deployment, None
    if last and last.number == rollout.steps - 1:
        changes = changes_kept(last, inputs_as_json(saw, now), rollout.steps)
    inputs = inputs_json(saw, now) if changes is None else changes
    whole_step = last.whole_step if last and changes is not None else None
    return StepRecord(rollout.id, rollout.steps, decision.verdict, inputs, decision_json(decision), whole_step)


def _waited(decision: ClassifiedDecision, now: datetime) -> DecisionEffects:
    rollout = rollout_after(decision, now) if turns_clock(decision) else None
    return DecisionEffects(decision, rollout=rollout, waits_for=decision.awaited_verb)


def _change_effects(decision: ClassifiedDecision, phase: str, now: datetime) -> DecisionEffects:
    key, rollout = history_key(phase, decision), rollout_after(decision, now)
    return DecisionEffects(
        decision,
        key,
        str(key),
        None if decision.stays else deployment_after(decision, rollout, now),
        rollout,
        outcome_of(decision),
        back_reason_of(decision),
        decision.awaited_verb,
    )
