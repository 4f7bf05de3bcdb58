"""What one transaction of a handler came to."""

from dataclasses import dataclass, field
from typing import Self

from db.cycle.routes import StrategyApplyResult
from domain.handlers.base import DeploymentExecutionResult
from domain.model.deployment import DeploymentLifecycleStatus


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What one transaction did: what was decided of each deployment, and the routes that were written.

    `glanced`: how many more there were of which a glance told that they wait.
    """

    decided: DeploymentExecutionResult = field(default_factory=DeploymentExecutionResult)
    glanced: int = 0
    applied: StrategyApplyResult = field(default_factory=StrategyApplyResult)
    due: frozenset[DeploymentLifecycleStatus] = frozenset()
    """The statuses of those that must be looked at again at once."""
    late: float = 0.0
    """For how many seconds the deployment had been due that was due first."""

    @property
    def seen(self) -> int:
        """The deployments looked at."""
        return len(self.decided.decisions) + self.glanced

    def __add__(self, other: Self) -> Self:
        late = max(self.late, other.late)
        return type(self)(
            self.decided + other.decided,
            self.glanced + other.glanced,
            self.applied + other.applied,
            self.due | other.due,
            late,
        )
