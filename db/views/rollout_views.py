"""The reads for people: rollouts, running and ended, as frozen values."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from db.locking.statuses import canary_state
from domain.model.deployment import Deployment, Rollout
from domain.text.errors import RolloutNotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutView:
    """A rollout, running or ended; `outcome` is None while it runs, `back_reason` says why it was turned back.

    `in_use` and `unanswered`: as in `domain.model.deployment.Rollout`.
    """

    id: UUID
    deployment: str
    from_revision_id: UUID
    to_revision_id: UUID
    from_revision: str
    to_revision: str
    strategy: str
    spec: dict[str, Any]
    limits: dict[str, Any]
    desired_at_start: int
    desired_with_revision: int | None
    actor: str
    reason: str
    started_at: datetime
    last_progress_at: datetime
    deadline: datetime
    clock_stopped_at: datetime | None
    promote_requested: bool
    is_undo: bool
    failed_routes: int
    last_failure: str | None
    in_use: bool
    unanswered: int | None
    steps: int
    back_reason: str | None
    outcome: str | None
    ended_at: datetime | None
    stage: int
    weight: int | None
    weight_known_at: datetime | None

    @property
    def snapshot(self) -> Rollout:
        from domain.strategies.builtin import stored_policy  # noqa: PLC0415 -- who only shows a rollout needs no strategy

        policy = stored_policy({"strategy": self.strategy, "spec": self.spec, "limits": self.limits})
        canary = canary_state(self.stage, self.weight, self.weight_known_at)
        return Rollout(policy=policy, canary=canary, **shared_fields(self, Rollout))


_JOINED = {"deployment": "d.name", "from_revision": "f.name", "to_revision": "t.name"}
_COLUMNS = (f"{_JOINED.get(each.name, f'o.{each.name}')} AS {each.name}" for each in fields(RolloutView))
_ROLLOUTS = f"""
    SELECT {", ".join(_COLUMNS)}
      FROM rollouts o JOIN deployments d ON d.id = o.deployment_id
      JOIN revisions f ON f.id = o.from_revision_id JOIN revisions t ON t.id = o.to_revision_id
     WHERE o.id = ANY(%s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRollout:
    """An ended rollout whose rows are cut, as its receipt keeps it."""

    id: UUID
    from_revision: str
    to_revision: str
    actor: str
    reason: str
    started_at: datetime
    ended_at: datetime
    outcome: str


def rollouts_by_id(connection: Connection[Any], ids: Iterable[UUID]) -> dict[UUID, RolloutView]:
    cursor = connection.cursor(row_factory=class_row(RolloutView))
    return {rollout.id: rollout for rollout in cursor.execute(_ROLLOUTS, (list(ids),)).fetchall()}


def rollout_of_id(connection: Connection[Any], rollout_id: UUID) -> RolloutView:
    """A rollout, under way or ended. Raises RolloutNotFoundError."""
    view = rollouts_by_id(connection, [rollout_id]).get(rollout_id)
    if view is None:
        message = f"there is no rollout {rollout_id}; its id is in the answer of the command that began it"
        raise RolloutNotFoundError(message, rollout_id=rollout_id)
    return view


_IS_OF = """
    SELECT EXISTS (SELECT FROM deployments d
                    WHERE d.name = %(deployment)s
                      AND (EXISTS (SELECT FROM rollouts WHERE id = %(rollout)s AND deployment_id = d.id)
                           OR EXISTS (SELECT FROM receipts WHERE rollout_id = %(rollout)s AND deployment_id = d.id)))
"""


def is_rollout_of(connection: Connection[Any], deployment: str, rollout: UUID) -> bool:
    """Whether the deployment has, or had, a rollout of that id, of which at least the receipt is kept."""
    ((is_known,),) = connection.execute(_IS_OF, {"deployment": deployment, "rollout": rollout})
    return bool(is_known)


def shared_fields(view: object, kind: type[Deployment | Rollout]) -> dict[str, Any]:
    """The fields of `kind` that the view has under the same names."""
    return {field.name: getattr(view, field.name) for field in fields(kind) if hasattr(view, field.name)}
