"""The numbered steps of rollouts: those that the next ones build on are read, and the next ones are kept."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from psycopg import Connection

from db.locking.rows import columns, named_row
from domain.cycle.chain import KeptStep
from domain.cycle.writes import StepRecord

_STEP = columns("""
    rollout_id uuid, step_no int4, phase text, at timestamptz, verdict text, inputs jsonb, decision jsonb,
    whole_step int4
""")

_LAST = columns("rollout_id uuid, step_no int4")

_KEPT = f"""
    SELECT s.rollout_id, s.step_no AS number, s.inputs, coalesce(s.whole_step, s.step_no) AS whole_step
      FROM {_LAST}
      JOIN rollout_steps last USING (rollout_id, step_no)
      JOIN rollout_steps s ON s.rollout_id = last.rollout_id
       AND s.step_no BETWEEN coalesce(last.whole_step, last.step_no) AND last.step_no
     ORDER BY s.rollout_id, s.step_no
"""


def kept_steps(connection: Connection, last: Sequence[tuple[UUID, int]]) -> list[KeptStep]:
    """The last steps of these rollouts, each with those that it builds on before it."""
    if not last:
        return []
    return connection.cursor(row_factory=named_row(KeptStep)).execute(_KEPT, _LAST.arrays(last)).fetchall()


def record_steps(connection: Connection, phase: str, steps: Iterable[StepRecord], at: datetime) -> None:
    """One numbered step for each changing cycle of a rollout."""
    rows = [
        (
            step.rollout_id,
            step.number,
            phase,
            at,
            step.verdict.value,
            step.inputs,
            step.decision,
            step.whole_step,
        )
        for step in steps
    ]
    if rows:
        _STEP.add(connection, "rollout_steps", rows)
