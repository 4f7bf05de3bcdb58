"""Foretell, then write: the domain makes what decisions leave behind, and the applier gets finished values."""

from collections.abc import Sequence

from psycopg import Connection

from db.cycle.applier import StrategyResultApplier, WaitingRow
from db.cycle.claim import Claim
from db.cycle.routes import StrategyApplyResult
from db.placing import Wanted, grounds_for
from domain.cycle.foretold import foretold, new_routes
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
    """Write what these decisions of the handler named `phase` leave behind, and the waits that a glance told.

    Raises what the applier raises. Events are made only where somebody is subscribed.
    """
    left = foretold(decisions, phase, claim.now)
    told = told_by_decisions(left, phase, claim.now) if claim.is_heard else ()
    new = new_routes(left)
    drained = [route_id for decision in decisions for route_id in decision.changes.drain_route_ids]
    hosts = hosts_by(grounds_for(connection, [Wanted(each.deployment_id, each.revision_id) for each in new], drained))
    placed = list(zip(new, hosts, strict=True))
    return StrategyResultApplier(connection, phase).apply(left, placed, told, claim, glanced)
