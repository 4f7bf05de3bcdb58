"""Finds combinations of rows that none of our transactions leaves behind. Reports each in a sentence; repairs none.

Constraints hold a row to itself and to the rows it names; this module checks what no constraint can say. A finding is a
fault of this program, or a change by hand in the database. All checks are one statement, so they see one moment.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from psycopg import Connection
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.locking.statuses import ACTIVE, PRESENT, RUNNING
from domain.planning.sealed_receipt import Sealed, broken

MOST = 1000
"""The most findings of an audit."""

_ENDED_OTHERWISE = """
    (o.outcome = 'completed' AND o.back_reason IS NOT NULL OR o.outcome = 'rolled_back' AND o.back_reason IS NULL)
"""
"""The condition of an index, so that past rows need not be read."""

CHECKS = {
    "open_rollout_unlinked": """
        SELECT d.name, concat('rollout ', o.id, ' is open, but the deployment, ', d.lifecycle, ', does not point to it')
          FROM rollouts o JOIN deployments d ON d.id = o.deployment_id
         WHERE o.ended_at IS NULL AND d.rollout_id IS DISTINCT FROM o.id
    """,
    "deploying_on_ended_rollout": """
        SELECT d.name, concat('it is deploying, but its rollout ', o.id, ' has ended: ', o.outcome)
          FROM deployments d JOIN rollouts o ON o.id = d.rollout_id
         WHERE o.ended_at IS NOT NULL
    """,
    "rollout_leads_elsewhere": """
        SELECT d.name, concat('its rollout ', o.id, ' leads from or to another revision than the deployment says')
          FROM deployments d JOIN rollouts o ON o.id = d.rollout_id
         WHERE d.rollout_id IS NOT NULL -- said, since Postgres expects one of each deployment otherwise
           AND (o.deployment_id, o.from_revision_id, o.to_revision_id)
               IS DISTINCT FROM (d.id, d.current_revision_id, d.deploying_revision_id)
    """,
    "direction_contradicts_rollout": f"""
        SELECT d.name, concat('rollout ', o.id, ' is ', coalesce(o.outcome, d.sub_step), ', but ',
                              CASE WHEN o.back_reason IS NULL THEN 'was never turned back'
                                   ELSE 'was turned back: ' || o.back_reason END)
          FROM rollouts o JOIN deployments d ON d.id = o.deployment_id
         WHERE (o.ended_at IS NULL OR {_ENDED_OTHERWISE})
           AND CASE coalesce(o.outcome, d.sub_step) WHEN 'completed' THEN o.back_reason IS NOT NULL
                                                      WHEN 'provisioning' THEN o.back_reason IS NOT NULL
                                                      WHEN 'rolled_back' THEN o.back_reason IS NULL
                                                      WHEN 'rolling_back' THEN o.back_reason IS NULL END
    """,
    "steps_do_not_add_up": """
        SELECT d.name, concat('rollout ', o.id, ' counts ', o.steps, ' steps, of which ', count(s.step_no),
                              ' are recorded, the last as number ', max(s.step_no))
          FROM rollouts o JOIN deployments d ON d.id = o.deployment_id LEFT JOIN rollout_steps s ON s.rollout_id = o.id
         WHERE o.ended_at IS NULL OR o.ended_at > now() - interval '1 day'
         GROUP BY d.id, o.id
        HAVING o.steps <> count(s.step_no) OR o.steps <> coalesce(max(s.step_no), 0)
    """,
    "step_builds_on_nothing": """
        SELECT name, concat('step ', min(step_no), ' of rollout ', rollout_id, ' says what it saw otherwise than ',
                            'the step before, which is missing or builds on another one')
          FROM (SELECT d.name, s.rollout_id, s.step_no, s.whole_step,
                       s.step_no - 1 IS DISTINCT FROM lag(s.step_no) OVER each
                       OR s.whole_step IS DISTINCT FROM lag(coalesce(s.whole_step, s.step_no)) OVER each AS is_torn
                  FROM rollouts o JOIN deployments d ON d.id = o.deployment_id
                  JOIN rollout_steps s ON s.rollout_id = o.id
                 WHERE o.ended_at IS NULL OR o.ended_at > now() - interval '1 day'
                WINDOW each AS (PARTITION BY s.rollout_id ORDER BY s.step_no)) steps
         WHERE whole_step IS NOT NULL AND is_torn
         GROUP BY name, rollout_id
    """,
    "waits_without_clock": """
        SELECT d.name, concat_ws('/', 'nothing will ever look at it again: it is ' || d.lifecycle, d.sub_step)
          FROM deployments d LEFT JOIN rollouts o ON o.id = d.rollout_id
         WHERE d.due_at IS NULL AND o.clock_stopped_at IS NULL
           AND (d.lifecycle = 'scaling' OR d.sub_step = 'provisioning')
    """,
    "destroyed_but_marked": """
        SELECT d.name, 'it is destroyed, but marked for a handler, and none will take the mark away'
          FROM deployments d
         WHERE d.lifecycle = 'destroyed' AND d.due_at IS NOT NULL
    """,
    "route_outlives_deployment": f"""
        SELECT d.name, concat('route ', r.id, ' is ', r.status, ', but its deployment is destroyed')
          FROM routes r JOIN deployments d ON d.id = r.deployment_id
         WHERE r.{PRESENT} AND d.lifecycle = 'destroyed'
    """,
    "route_before_first_revision": f"""
        SELECT d.name, concat('route ', r.id, ' is ', r.status, ', but its deployment has not begun to start any')
          FROM routes r JOIN deployments d ON d.id = r.deployment_id
         WHERE r.{PRESENT} AND d.lifecycle = 'pending'
    """,
    # a handler has looked since it became so; a sick replica may delay the look at a parked one for its grace
    "foreign_route_at_rest": f"""
        SELECT d.name, concat('route ', r.id, ' runs a revision that is not the current one, and nothing drains it')
          FROM routes r JOIN deployments d ON d.id = r.deployment_id
         WHERE r.{ACTIVE} AND r.revision_id <> d.current_revision_id
           AND (r.parked_until IS NULL OR r.parked_until < now() - interval '5 minutes')
           AND d.lifecycle = 'ready' AND d.degraded_reason IS NULL AND (d.due_at IS NULL OR d.due_at > now())
    """,
    "route_of_foreign_rollout": f"""
        SELECT d.name, concat('route ', r.id, ' was created by rollout ', r.rollout_id, ' of another deployment')
          FROM routes r JOIN deployments d ON d.id = r.deployment_id
         WHERE r.{PRESENT} AND (SELECT deployment_id FROM rollouts WHERE id = r.rollout_id) <> r.deployment_id
    """,
    "budgets_unguarded": """
        SELECT 'every deployment', concat('trigger ', guard, ' is gone or switched off: nothing refuses what breaks it')
          FROM (VALUES ('routes_within_ceiling'), ('routes_above_floor')) guards (guard)
         WHERE NOT EXISTS (SELECT FROM pg_trigger
                            WHERE tgrelid = 'routes'::regclass AND tgname = guard AND tgenabled IN ('O', 'A'))
    """,
    # the last record is kept as long as anything of the deployment is
    "history_lost": """
        SELECT d.name, 'the last record of its history is gone, and nobody but a cut of all that is its own removes it'
          FROM deployments d
         WHERE d.lifecycle <> 'destroyed' AND d.history_id IS NOT NULL
           AND NOT EXISTS (SELECT FROM deployment_history h WHERE h.id = d.history_id)
    """,
    "active_but_drained": f"""
        SELECT d.name, concat('route ', r.id, ' is ', r.status, ', but is marked as drained or asked to end')
          FROM routes r JOIN deployments d ON d.id = r.deployment_id
         WHERE r.{ACTIVE}
           AND num_nonnulls(r.drain_started_at, r.out_of_traffic_at, r.stop_requested_at) > 0
    """,
    "running_without_address": f"""
        SELECT d.name, concat('route ', r.id, ' is ', r.status, ', but has no address')
          FROM routes r JOIN deployments d ON d.id = r.deployment_id
         WHERE r.{RUNNING} AND r.address IS NULL
    """,
}

_FOUND = (f"SELECT name, '{code}', said FROM ({check}) AS found (name, said)" for code, check in CHECKS.items())
_AUDIT = f"{' UNION ALL '.join(_FOUND)} ORDER BY 1, 2, 3 LIMIT {MOST}"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something impossible about the deployment of that name. `sentence`: what it is, for a person."""

    deployment: str
    code: str
    sentence: str


def impossible_combinations(connection: Connection) -> list[Finding]:
    """All impossible combinations at this moment, at most `MOST`; nothing is locked or changed."""
    return [Finding(*row) for row in connection.execute(_AUDIT).fetchall()]


Place = tuple[UUID, int]
AT_ONCE = 200

# a receipt outlives its deployment's row
_PAGE = """
    SELECT r.deployment_id, r.number, r.text, r.sha256, b.text, b.sha256,
           r.number = (SELECT min(number) FROM receipts WHERE deployment_id = r.deployment_id),
           coalesce((SELECT name FROM deployments WHERE id = r.deployment_id), r.deployment_id::text)
      FROM receipts r LEFT JOIN receipts b ON b.deployment_id = r.deployment_id AND b.number = r.number - 1
     WHERE (r.deployment_id, r.number) > (%s, %s)
     ORDER BY r.deployment_id, r.number
     LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class ChainPage:
    """The findings among some receipts. `last`: the place of the last receipt; None: there are no more."""

    findings: Sequence[Finding]
    last: Place | None


def chain_page(connection: Connection[Any], after: Place | None) -> ChainPage:
    """Look at the next receipts behind that place, each with the one before it."""
    rows = connection.execute(_PAGE, (*(after or (UUID(int=0), 0)), AT_ONCE)).fetchall()
    findings = []
    for _, number, text, sha256, text_before, sha256_before, is_oldest, name in rows:
        before = None if text_before is None else Sealed(number - 1, text_before, sha256_before)
        if fault := broken(Sealed(number, text, sha256), before, is_oldest=is_oldest):
            findings.append(Finding(name, "receipt_chain_broken", fault))
    return ChainPage(findings, rows[-1][:2] if len(rows) == AT_ONCE else None)


def all_chains(engine: Engine) -> Iterator[Finding]:
    """Look at all receipts, page by page."""
    after: Place | None = None
    while True:
        page = in_transaction(engine, partial(chain_page, after=after))
        yield from page.findings
        if page.last is None:
            return
        after = page.last
