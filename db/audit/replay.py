"""Every recorded step of every rollout decided once more: what was stored must come out again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from domain.model import Verdict
from domain.replay import replay_step
from domain.transitions import MAX_ATTEMPTS

_STEPS = """
    SELECT d.name AS deployment, s.rollout_id, s.step_no, s.phase, s.inputs, s.decision
      FROM rollout_steps s JOIN rollouts o ON o.id = s.rollout_id JOIN deployments d ON d.id = o.deployment_id
     WHERE %(rollout_id)s::uuid IS NULL OR s.rollout_id = %(rollout_id)s
     ORDER BY o.started_at, s.rollout_id, s.step_no
"""


@dataclass(frozen=True, slots=True)
class DifferingStep:
    """A step that comes out differently. Both decisions in the form of `domain.recording.decision_json`."""

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
class ReplayReport:
    """How many steps came out as stored, how many record a write that failed, and those that differ."""

    equal: int
    failed_writes: int
    differing: tuple[DifferingStep, ...]


def replay_rollouts(connection: Connection, rollout_id: UUID | None = None) -> ReplayReport:
    """All steps, or those of one rollout. Raises InvalidInputError for a phase that no handler has."""
    equal, failed_writes, differing = 0, 0, []
    with connection.cursor("replay", row_factory=dict_row) as cursor:
        for row in cursor.execute(_STEPS, {"rollout_id": rollout_id}):
            replayed = replay_step(row["inputs"], row["phase"])
            if replayed == row["decision"]:
                equal += 1
            elif _records_a_failed_write(row["inputs"], row["decision"]):
                failed_writes += 1
            else:
                found = (row["deployment"], row["rollout_id"], row["step_no"], row["decision"], replayed)
                differing.append(DifferingStep(*found))
    return ReplayReport(equal, failed_writes, tuple(differing))


def _records_a_failed_write(inputs: Mapping[str, Any], decision: Mapping[str, Any]) -> bool:
    """Postgres refused what was decided, so an error was written instead; the last of a row is the giving up."""
    if decision["verdict"] == Verdict.GIVE_UP:
        return int(inputs["deployment"]["phase_attempts"]) + 1 >= MAX_ATTEMPTS
    return bool(decision["verdict"] == Verdict.ERROR)
