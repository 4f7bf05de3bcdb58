"""All that is written of a chunk, as one finished value: snapshots, steps, waits, and records for people."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from domain.cycle.effects import back_reason_of, deployment_after, rollout_after
from domain.cycle.recording import decision_json, inputs_as_json, inputs_json
from domain.cycle.step_deltas import SMALL, KeptStep, changes_kept, last_of_each
from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.model.deployment import Deployment, Rollout
from domain.model.states import RolloutOutcome, TrafficStatus, Verdict
from domain.replicas.host_choice import Placement, PlacingGrounds, placements


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
    """The key of this decision's record."""
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
    if classified.verdict is Verdict.ERROR:
        return classified.reason.partition(":")[0]
    return str(classified.verdict) if classified.verdict in {Verdict.EXPIRED, Verdict.GIVE_UP} else None


@dataclass(frozen=True, slots=True)
class DecisionEffects:
    """All that one decision writes.

        a wait               nothing but its reason and the next look; the rollout where its clock stops or runs again
        a step of many       a record of the timeline, and the rollout
        a move               these, and the deployment: its next snapshot, with the routes from before

    `remembered_as`: the key of the record as text, under which the next record may merge into it. `waits_for`: what a
    person must type before the rollout continues; None where it waits for nobody.
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


class HistoryHead(NamedTuple):
    """The last history record of a deployment: its id, and the key under which the next one merges into it."""

    id: UUID | None
    key: str | None


class DeploymentWait(NamedTuple):
    """A deployment that waits: what is written of it. `waits_for`: what a person must type."""

    id: UUID
    version: int
    due_at: datetime | None
    reason: str
    waits_for: str | None


class LockedChunk(Protocol):
    """The facts of a claim that its writes need: the last records, and the deployments with sticky callers."""

    @property
    def heads(self) -> Mapping[UUID, HistoryHead]: ...
    @property
    def has_sticky_callers(self) -> Sequence[UUID]: ...


@dataclass(frozen=True, slots=True)
class ChunkWrites:
    """All that one transaction writes of a chunk. `phase`: the handler's name, which is the actor of each record.

    `placed`: new routes, their hosts and devices; `parked`: routes, and until when they are kept; `changes`: effects
    that leave a record, each with the record from before; `effects`: of all decisions, in their order; `seated`:
    deployments whose new replicas may take a seat.
    """

    phase: str
    at: datetime
    placed: Sequence[tuple[NewRoute, Placement]]
    promoted: Sequence[UUID]
    parked: Sequence[tuple[UUID, datetime | None]]
    drained: Sequence[UUID]
    effects: Sequence[DecisionEffects]
    changes: Sequence[tuple[DecisionEffects, HistoryHead]]
    waits: Sequence[DeploymentWait]
    seated: Sequence[UUID]
    steps: Sequence[StepRecord]


def plan_writes(  # noqa: PLR0913  (all that a transaction is of)
    phase: str,
    decisions: Sequence[ClassifiedDecision],
    chunk: LockedChunk,
    now: datetime,
    grounds: PlacingGrounds,
    kept_steps: Iterable[KeptStep],
    glanced: Iterable[DeploymentWait] = (),
) -> ChunkWrites:
    """What a chunk's decisions write. `grounds`: for the hosts of `new_routes`; `kept_steps`: the `steps_to_build_on`.

    `glanced`: the waits of deployments that a glance decided.
    """
    routes = [decision.changes for decision in decisions if decision.changes_anything]
    effects, heads = decision_effects(decisions, phase, now), chunk.heads
    changes = [(effect, heads[effect.decision.deployment.id]) for effect in effects if effect.key]
    return ChunkWrites(
        phase=phase,
        at=now,
        placed=[
            (route, placement)
            for route, placement in zip(new_routes(decisions), placements(grounds), strict=True)
            if not placement.is_put_off
        ],
        promoted=[route_id for each in routes for route_id in each.promote_route_ids],
        parked=[(route_id, each.park_until) for each in routes for route_id in each.park_route_ids],
        drained=drained_routes(decisions),
        effects=effects,
        changes=changes,
        waits=[*(_wait_of(effect) for effect in effects if not effect.key), *glanced],
        seated=chunk.has_sticky_callers if changes else (),
        steps=steps_of(effects, now, kept_steps),
    )


def drained_routes(decisions: Iterable[ClassifiedDecision]) -> list[UUID]:
    """The routes that decisions drain, in the order of the decisions."""
    return [route_id for decision in decisions for route_id in decision.changes.drain_route_ids]


def woken_routes(decisions: Iterable[ClassifiedDecision]) -> list[tuple[UUID, TrafficStatus]]:
    """The sleeping replicas that decisions wake."""
    return [waking for decision in decisions for waking in decision.changes.woken]


def new_routes(decisions: Iterable[ClassifiedDecision]) -> list[NewRoute]:
    """The replicas that decisions want, one by one, in the order of the decisions."""
    return [
        NewRoute(before.id, spec.revision_id, before.rollout.id if before.rollout else None, spec.traffic)
        for decision in decisions
        for before in (decision.deployment,)
        for spec in decision.changes.rollout_specs
        for _ in range(spec.count)
    ]


def decision_effects(decisions: Iterable[ClassifiedDecision], phase: str, now: datetime) -> list[DecisionEffects]:
    """The effect of each decision, in their order. `phase`: the name of the handler that made them."""
    return [
        _change_effects(decision, phase, now) if decision.changes_anything else _wait_effects(decision, now)
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


_OUTCOMES = {RevisionMove.SWAP: RolloutOutcome.COMPLETED, RevisionMove.CLEAR: RolloutOutcome.ROLLED_BACK}


def outcome_of(decision: ClassifiedDecision) -> RolloutOutcome | None:
    """How this decision ends the rollout; None if it does not."""
    return _OUTCOMES.get(decision.revision)


def _step(decision: ClassifiedDecision, rollout: Rollout, now: datetime, last: KeptStep | None) -> StepRecord:
    saw, changes = decision.deployment, None
    if last and last.number == rollout.steps - 1:
        changes = changes_kept(last, inputs_as_json(saw, now), rollout.steps)
    inputs = inputs_json(saw, now) if changes is None else changes
    whole_step = last.whole_step if last and changes is not None else None
    return StepRecord(rollout.id, rollout.steps, decision.verdict, inputs, decision_json(decision), whole_step)


def _wait_of(effect: DecisionEffects) -> DeploymentWait:
    decision, deployment = effect.decision, effect.decision.deployment
    return DeploymentWait(deployment.id, deployment.version, decision.due_at, decision.reason, effect.waits_for)


def _wait_effects(decision: ClassifiedDecision, now: datetime) -> DecisionEffects:
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
