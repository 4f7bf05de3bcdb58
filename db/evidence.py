"""What the judges of canaries have seen: the intervals of their rollouts, with the answers of both sides."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from domain.model.answers import Answers, Copies
from domain.model.canary import Evidence

_EVIDENCE = """
    SELECT i.rollout_id, i.at, i.reporting, i.live, i.copies, i.copies_failed, coalesce(p.failed, 0), i.youngest_at,
           n.done, n.failed, n.first_byte, n.cut, n.begun, n.refused,
           o.done, o.failed, o.first_byte, o.cut, o.begun, o.refused
      FROM intervals i JOIN rollouts r ON r.id = i.rollout_id
      LEFT JOIN answers n ON (n.rollout_id, n.interval_id, n.revision_id) = (i.rollout_id, i.id, r.to_revision_id)
      LEFT JOIN answers o ON (o.rollout_id, o.interval_id) = (i.rollout_id, i.id)
       AND o.revision_id = CASE WHEN r.spec #>> '{judge,baseline}' = 'fresh' THEN r.id ELSE r.from_revision_id END
      LEFT JOIN answers p ON (p.rollout_id, p.interval_id, p.revision_id) = (i.rollout_id, i.id, r.from_revision_id)
     WHERE i.rollout_id = ANY(%(ids)b)
     ORDER BY i.rollout_id, i.id
"""


def evidence_of(connection: Connection[Any], rollouts: Sequence[UUID]) -> dict[UUID, tuple[Evidence, ...]]:
    """The evidence of these rollouts, by their ids, the oldest interval first."""
    found: defaultdict[UUID, list[Evidence]] = defaultdict(list)
    rows = connection.cursor(binary=True).execute(_EVIDENCE, {"ids": list(rollouts)}).fetchall()
    for rollout_id, at, reporting, live, copies, copies_failed, old_failed, youngest_at, *sides in rows:
        of_copies = Copies(copies, copies_failed)
        both = _answers(sides[:6]), _answers(sides[6:])
        found[rollout_id].append(Evidence(at, *both, reporting, live, of_copies, old_failed, youngest_at))
    return {rollout_id: tuple(seen) for rollout_id, seen in found.items()}


def _answers(counts: Sequence[Any]) -> Answers:
    done, failed, first_byte, cut, begun, refused = counts
    return Answers() if done is None else Answers(done, failed, tuple(first_byte), cut, begun, refused)
