"""Writing decisions: the domain makes next snapshots, the applier copies them into rows; by halves where refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeVar

from psycopg import Connection

from db.cycle.applier import StrategyApplyResult, StrategyResultApplier, WaitingRow, kept_steps
from db.cycle.claim import Claim
from db.placing import Placing, Wanted
from db.silence import is_unreachable
from domain.cycle.transitions import ClassifiedDecision
from domain.cycle.writes import foretold, new_routes, steps_of, steps_to_build_on
from domain.handlers.base import DeploymentExecutionResult
from domain.model.states import DeploymentLifecycleStatus
from domain.outbox.cloud_events import told_by_decisions
from domain.replicas.host_choice import hosts_by


def write_decisions(  # noqa: PLR0913  (all that a transaction is of)
    connection: Connection,
    phase: str,
    decisions: Sequence[ClassifiedDecision],
    claim: Claim,
    placing: Placing,
    glanced: Sequence[WaitingRow] = (),
) -> StrategyApplyResult:
    """Write the next snapshots of these decisions and the waits that a glance found. `phase`: the handler's name.

    Raises StaleSnapshotError. The domain makes each part while Postgres writes the part before.
    """
    applier, now = StrategyResultApplier(connection, phase, claim), claim.now
    changing = [decision for decision in decisions if decision.changes_anything]
    new, changes = new_routes(changing), [decision.changes for decision in changing]
    drained = [route_id for change in changes for route_id in change.drain_route_ids]
    wanted = [Wanted(each.deployment_id, each.revision_id) for each in new]
    hosts = hosts_by(placing.grounds(connection, wanted, drained))
    placing.add(hosts)
    kept = kept_steps(connection, steps_to_build_on(changing))
    applier.move_routes(changes, list(zip(new, hosts, strict=True)))
    left = foretold(decisions, phase, now)
    applier.apply(left, glanced)
    told = told_by_decisions(left, phase, now, claim.asked) if claim.is_heard else ()
    applier.record(steps_of(left, now, kept), told)
    return applier.result()


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


Thing = TypeVar("Thing")
Result = TypeVar("Result")


def in_halves(
    things: Sequence[Thing],
    error: Exception,
    work: Callable[[Sequence[Thing]], Result],
    blame: Callable[[Thing, Exception], Result],
) -> list[Result]:
    """Work on each half, and on its halves where it raises again. `error`: what `work` raised for all things.

    The thing that is bad is given to `blame`, with what it raised. A Postgres that cannot be reached is nobody's fault:
    then the error is raised.

        a b c d raised  ->  [work(a b), work(c), blame(d)]
    """
    if is_unreachable(error):
        raise error
    if len(things) == 1:
        return [blame(things[0], error)]
    middle = len(things) // 2
    return [*_half(things[:middle], work, blame), *_half(things[middle:], work, blame)]


def _half(
    things: Sequence[Thing],
    work: Callable[[Sequence[Thing]], Result],
    blame: Callable[[Thing, Exception], Result],
) -> list[Result]:
    try:
        return [work(things)]
    except Exception as error:  # noqa: BLE001  (whatever it is, it belongs to one thing of this half)
        return in_halves(things, error, work, blame)
