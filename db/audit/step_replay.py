"""Every recorded step of every rollout decided once more: what was stored must come out again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self
from uuid import UUID

from psycopg.rows import DictRow, dict_row
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from domain.cycle.step_deltas import Chain
from domain.handlers.dispatch import is_same_decision, records_a_failed_write, replay_step

_PAGE = 200
"""Steps that one statement reads: some megabytes."""

_STEPS = """
    SELECT d.name AS deployment, s.rollout_id, s.step_no, s.phase, s.inputs, s.decision
      FROM rollout_steps s JOIN rollouts o ON o.id = s.rollout_id JOIN deployments d ON d.id = o.deployment_id
     WHERE (s.rollout_id, s.step_no) > (%(rollout_id)s::uuid, %(step_no)s::int)
     ORDER BY s.rollout_id, s.step_no
     LIMIT %(page)s
"""

_BEFORE_ALL = {"rollout_id": UUID(int=0), "step_no": 0}


@dataclass(frozen=True, slots=True)
class DifferingStep:
    """A step that comes out differently. Both decisions in the form of `domain.cycle.recording.decision_json`."""

    deployment: str
    rollout_id: UUID
    step_no: int
    stored: Mapping[str, Any]
    replayed: Mapping[str, Any]

    def __str__(self) -> str:
        keys = [key for key in self.replayed if self.stored.get(key) != self.replayed[key]]
        differences = "; ".join(f"{key} was {self.stored.get(key)!r}, is now {self.replayed[key]!r}" for key in keys)
        return f"{self.deployment}, rollout {self.rollout_id}, step {self.step_no}: {differences}"


@dataclass(frozen=True, slots=True)
class LostStep:
    """A step of which nobody can tell what it saw: one that it builds on is missing, or is not what was recorded."""

    deployment: str
    rollout_id: UUID
    step_no: int


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """Counts of steps that came out as stored, and that record a failed write; those that differ, or are lost."""

    equal: int = 0
    failed_writes: int = 0
    differing: tuple[DifferingStep, ...] = ()
    lost: tuple[LostStep, ...] = ()

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.equal + other.equal,
            self.failed_writes + other.failed_writes,
            self.differing + other.differing,
            self.lost + other.lost,
        )

    @property
    def findings(self) -> list[str]:
        """A sentence for each step that differs, and for the lost steps of each rollout."""
        return [*map(str, self.differing), *(_sentence(list(steps)) for _, steps in groupby(self.lost, _rollout_id))]


def replay_pages(engine: Engine) -> Iterator[ReplayReport]:
    """All steps, rollout by rollout: a report for each page, which is read in a transaction of its own.

    Raises InvalidInputError for a phase that no handler has.
    """
    rows, chain = _page(engine, _BEFORE_ALL), Chain()
    while rows:
        yield sum((_replayed(row, chain) for row in rows), ReplayReport())
        rows = _page(engine, rows[-1])


def _page(engine: Engine, after: Mapping[str, Any]) -> list[DictRow]:
    place = {"rollout_id": after["rollout_id"], "step_no": after["step_no"], "page": _PAGE}
    return in_transaction(
        engine, lambda connection: connection.cursor(row_factory=dict_row).execute(_STEPS, place).fetchall()
    )


def _replayed(row: DictRow, chain: Chain) -> ReplayReport:
    step = row["deployment"], row["rollout_id"], row["step_no"]
    inputs = chain.whole(row["rollout_id"], row["step_no"], row["inputs"])
    if inputs is None:
        return ReplayReport(lost=(LostStep(*step),))
    replayed = replay_step(inputs, row["phase"])
    if is_same_decision(row["decision"], replayed):
        return ReplayReport(equal=1)
    if records_a_failed_write(inputs["deployment"]["phase_attempts"], row["decision"]):
        return ReplayReport(failed_writes=1)
    return ReplayReport(differing=(DifferingStep(*step, row["decision"], replayed),))


def _sentence(lost: Sequence[LostStep]) -> str:
    first = lost[0]
    return (
        f"{first.deployment}, rollout {first.rollout_id}: {len(lost)} steps from step {first.step_no} on cannot be "
        "decided again: each is recorded as what differs from the step before, and one is missing or was altered"
    )


def _rollout_id(step: LostStep) -> UUID:
    return step.rollout_id
