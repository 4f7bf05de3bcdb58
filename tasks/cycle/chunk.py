"""The result of one transaction of a handler."""

from dataclasses import dataclass, field
from typing import Self

from db.cycle.routes import StrategyApplyResult
from domain.handlers.base import DeploymentExecutionResult
from domain.model.deployment import DeploymentLifecycleStatus


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The decisions of one transaction, and the routes that it wrote.

    `glanced`: how many more deployments wait, as a glance showed.
    """

    decided: DeploymentExecutionResult = field(default_factory=DeploymentExecutionResult)
    glanced: int = 0
    applied: StrategyApplyResult = field(default_factory=StrategyApplyResult)
    due: frozenset[DeploymentLifecycleStatus] = frozenset()
    """The statuses of the deployments that a handler must look at again at once."""
    late: float = 0.0
    """How many seconds late the transaction was for the deployment that was due first."""
    is_wished: bool = False
    """Whether wishes waited when its deployments were claimed."""

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
            self.is_wished or other.is_wished,
        )
