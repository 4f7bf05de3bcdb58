"""Writing decisions: the domain makes the next snapshots, and the applier copies them into rows."""

from collections.abc import Sequence

from psycopg import Connection

from db.cycle.applier import StrategyResultApplier, WaitingRow
from db.cycle.claim import Claim
from db.cycle.routes import StrategyApplyResult
from db.placing import Wanted, grounds_for
from domain.cycle.foretold import foretold, new_routes, steps_of
from domain.cycle.transitions import ClassifiedDecision
from domain.outbox.cloud_events import told_by_decisions
from domain.replicas.placement import hosts_by


def write_decisions(
    connection: Connection,
    phase: str,
    decisions: Sequence[ClassifiedDecision],
    claim: Claim,
    glanced: Sequence[WaitingRow] = (),
) -> StrategyApplyResult:
    """Write the next snapshots of these decisions and the waits that a glance found. `phase`: the handler's name.

    Raises StaleSnapshotError. The domain makes each part while Postgres writes the part before.
    """
    applier, now = StrategyResultApplier(connection, phase, claim), claim.now
    changing = [decision for decision in decisions if decision.changes_anything]
    new, changes = new_routes(changing), [decision.changes for decision in changing]
    drained = [route_id for change in changes for route_id in change.drain_route_ids]
    hosts = hosts_by(grounds_for(connection, [Wanted(each.deployment_id, each.revision_id) for each in new], drained))
    applier.move_routes(changes, list(zip(new, hosts, strict=True)))
    left = foretold(decisions, phase, now)
    applier.apply(left, glanced)
    told = told_by_decisions(left, phase, now, claim.asked) if claim.is_heard else ()
    applier.record(steps_of(left, now), told)
    return applier.result()
