"""Reads what holds rollouts, in the transaction to move them: freezes, and groups with what is open there.

Who asks for a place in a group locks the group's row until its transaction ends, so the last one is not given twice.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection

from db.cycle.snapshots import DeploymentRow
from db.freezes import GROUP_OF, gates_of
from db.locking.statuses import lifecycle_status
from domain.model.deployment import Hold, Rollout
from domain.steering.holds import Gate, OpenRollout

_LOCK_GROUPS = f"SELECT FROM deployment_groups WHERE name IN ({GROUP_OF}) ORDER BY name FOR UPDATE"


class GoingForward(NamedTuple):
    """A locked deployment, its rollout, and whether a person let that through freezes."""

    row: DeploymentRow
    rollout: Rollout
    through_freeze: bool

    @property
    def may_be_held(self) -> bool:
        """Nothing holds what is on the way back, and what is paused waits for a person."""
        status = lifecycle_status(self.row.lifecycle, self.row.sub_step)
        return status.goes_forward and self.row.paused_at is None and not self.rollout.is_undo

    @property
    def open_rollout(self) -> OpenRollout:
        """As its group sees it."""
        rollout = self.rollout
        return OpenRollout(
            rollout.id,
            self.row.name,
            rollout.started_at,
            has_moved=rollout.steps > 0,
            through_freeze=self.through_freeze,
        )


class Gates(NamedTuple):
    """The gates that may hold locked deployments, by the id of each."""

    by_deployment: Mapping[UUID, tuple[OpenRollout, Gate]]

    def holds(self, now: datetime) -> dict[UUID, Hold]:
        """The holds, by deployment."""
        found = ((key, gate.hold(rollout, now)) for key, (rollout, gate) in self.by_deployment.items())
        return {key: hold for key, hold in found if hold is not None}


def read_gates(connection: Connection, locked: Iterable[GoingForward]) -> Gates:
    """Read the gates of deployments in a rollout: three statements at most, however many they are."""
    forward = [each for each in locked if each.may_be_held]
    if not forward:
        return Gates({})
    asking = [each.row.name for each in forward if not each.rollout.steps]
    if asking:
        connection.execute(_LOCK_GROUPS, (asking,))
    gates = gates_of(connection, [each.row.name for each in forward])
    return Gates({each.row.id: (each.open_rollout, gates[each.row.name]) for each in forward})
