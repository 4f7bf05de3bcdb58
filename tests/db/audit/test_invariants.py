"""Each thing that should be impossible, forged with constraints and triggers switched off, is found and told."""

from dataclasses import dataclass
from typing import LiteralString

import pytest
from sqlalchemy import Engine

from db.audit.invariants import CHECKS, Finding, impossible_combinations
from db.connection.transactions import transaction
from domain.model.states import DeploymentLifecycleStatus
from tests.support.pictures.pictures import DESTROYED, PENDING, PROVISIONING, READY, SCALING
from tests.support.rows.deployments import ask, make_deployment, write
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.worlds.busy_fleet import busy_fleet


def findings(engine: Engine) -> list[Finding]:
    with transaction(engine) as connection:
        return impossible_combinations(connection)


def forge(engine: Engine, statement: LiteralString) -> None:
    with transaction(engine) as connection:
        connection.execute("SET LOCAL session_replication_role = replica")
        assert connection.execute(statement).rowcount != 0


LEFT = """
    WITH left_by AS (UPDATE deployments SET lifecycle = 'scaling', sub_step = NULL, rollout_id = NULL,
                            deploying_revision_id = NULL, due_at = now())
"""
"""A rollout that is over: its deployment no longer points to it."""


@dataclass(frozen=True)
class Forged:
    code: str
    statement: LiteralString
    says: str
    picture: str = "■■■|"
    status: DeploymentLifecycleStatus = PROVISIONING
    whose: str = "web"


FORGED = [
    Forged(
        "open_rollout_unlinked",
        "UPDATE deployments SET rollout_id = NULL, deploying_revision_id = NULL, sub_step = NULL, lifecycle = 'ready'",
        "is open, but the deployment, ready, does not point to it",
    ),
    Forged(
        "deploying_on_ended_rollout",
        "UPDATE rollouts SET outcome = 'superseded', ended_at = now()",
        "has ended: superseded",
    ),
    Forged(
        "rollout_leads_elsewhere",
        "UPDATE rollouts SET to_revision_id = from_revision_id, from_revision_id = to_revision_id",
        "leads from or to another revision",
    ),
    Forged(
        "direction_contradicts_rollout",
        "UPDATE rollouts SET back_reason = 'too slow'",
        "is provisioning, but was turned back: too slow",
    ),
    Forged(
        "direction_contradicts_rollout",
        "UPDATE deployments SET sub_step = 'rolling_back'",
        "is rolling_back, but was never turned back",
    ),
    Forged(
        "direction_contradicts_rollout",
        f"{LEFT} UPDATE rollouts SET outcome = 'completed', ended_at = now() - interval '2 years',"
        " back_reason = 'too slow'",
        "is completed, but was turned back: too slow",
    ),
    Forged(
        "steps_do_not_add_up",
        f"{LEFT} UPDATE rollouts SET steps = 2, outcome = 'superseded', ended_at = now() - interval '20 hours'",
        "counts 2 steps, of which 0 are recorded",
    ),
    Forged("steps_do_not_add_up", "UPDATE rollouts SET steps = 2", "counts 2 steps, of which 0 are recorded"),
    Forged(
        "steps_do_not_add_up",
        "WITH gap AS (UPDATE rollouts SET steps = 1 RETURNING id)"
        " INSERT INTO rollout_steps SELECT id, 2, 'x', now(), 'success', '{}', '{}' FROM gap",
        "counts 1 steps, of which 1 are recorded, the last as number 2",
    ),
    Forged(
        "step_builds_on_nothing",
        "WITH three AS (UPDATE rollouts SET steps = 3 RETURNING id)"
        " INSERT INTO rollout_steps SELECT id, n, 'x', now(), 'success', '{}', '{}', CASE n WHEN 3 THEN 1 END"
        " FROM three, generate_series(1, 3) n",
        "step 3 of rollout ",
    ),
    Forged("waits_without_clock", "UPDATE deployments SET due_at = NULL", "it is deploying/provisioning"),
    Forged("waits_without_clock", "UPDATE deployments SET due_at = NULL", "it is scaling", "■■", SCALING),
    Forged("destroyed_but_marked", "UPDATE deployments SET due_at = now()", "marked for a handler", "", DESTROYED),
    Forged("route_outlives_deployment", "UPDATE deployments SET due_at = NULL", "is terminating", "~", DESTROYED),
    Forged("route_outlives_deployment", "UPDATE deployments SET due_at = NULL", "is healthy", "■", DESTROYED),
    Forged("route_before_first_revision", "UPDATE deployments SET due_at = now()", "is provisioning", "◇", PENDING),
    Forged("foreign_route_at_rest", "UPDATE deployments SET due_at = NULL", "and nothing drains it", "■|■■■", READY),
    Forged(
        "foreign_route_at_rest",
        """
        WITH parked AS (UPDATE routes SET traffic_status = 'inactive', parked_until = now() - interval '6 minutes'
                         WHERE revision_id NOT IN (SELECT current_revision_id FROM deployments))
        UPDATE deployments SET due_at = now() + interval '1 minute'
        """,
        "and nothing drains it",
        "■|■■■",
        READY,
    ),
    Forged(
        "route_of_foreign_rollout",
        """
        UPDATE routes SET rollout_id = (SELECT id FROM rollouts LIMIT 1)
         WHERE id IN (SELECT r.id FROM routes r JOIN deployments d ON d.id = r.deployment_id
                       WHERE d.name = 'web' LIMIT 1)
        """,
        "of another deployment",
        "■■■",
        READY,
    ),
    *(
        Forged("budgets_unguarded", statement, says, "■■■", READY, whose="every deployment")
        for statement, says in (
            ("DROP TRIGGER routes_within_ceiling ON routes", "trigger routes_within_ceiling is gone or switched off"),
            ("ALTER TABLE routes DISABLE TRIGGER routes_above_floor", "trigger routes_above_floor is gone or switched"),
        )
    ),
    Forged("history_lost", "UPDATE deployments SET history_id = gen_random_uuid()", "history is gone", "■■■", READY),
    *(
        Forged("active_but_drained", statement, says, picture, status)
        for statement, says, picture, status in (
            (
                "UPDATE routes SET drain_started_at = now()",
                "is healthy, but is marked as drained",
                "■",
                READY,
            ),
            ("UPDATE routes SET out_of_traffic_at = now()", "is provisioning, but is marked as drained", "◇", SCALING),
            (
                "UPDATE routes SET stop_requested_at = now(), status = 'unhealthy'",
                "is unhealthy, but is marked as drained",
                "■",
                READY,
            ),
        )
    ),
    Forged("running_without_address", "UPDATE routes SET address = NULL", "but has no address", "■"),
]


@pytest.mark.decides_wrongly
@pytest.mark.parametrize("forged", FORGED, ids=lambda forged: f"{forged.code}: {forged.says}")
def test_what_should_be_impossible_is_found_and_told(engine: Engine, forged: Forged) -> None:
    if forged.code == "route_of_foreign_rollout":
        make_deployment(engine, "■■■|", name="other", status=PROVISIONING)
    make_deployment(engine, forged.picture, status=forged.status)
    forge(engine, forged.statement)
    (found,) = findings(engine)
    assert (found.deployment, found.code) == (forged.whose, forged.code)
    assert forged.says in found.sentence


def test_no_check_is_left_out() -> None:
    assert {forged.code for forged in FORGED} == CHECKS.keys()


def test_it_changes_nothing_and_waits_for_nobody(engine: Engine) -> None:
    made = make_deployment(engine, "■", status=PROVISIONING)
    forge(engine, "UPDATE routes SET address = NULL")
    with transaction(engine) as connection:
        assert connection.execute("SELECT FROM deployments WHERE id = %s FOR UPDATE", (made.id,)).rowcount == 1
        assert findings(engine) == findings(engine) != []


def test_a_replica_kept_for_the_way_back_is_no_finding(engine: Engine) -> None:
    make_deployment(engine, "■|■■■", status=READY)
    forge(
        engine,
        "UPDATE routes SET traffic_status = 'inactive', parked_until = now() + interval '1 hour'"
        " WHERE revision_id NOT IN (SELECT current_revision_id FROM deployments)",
    )
    write(engine, "UPDATE deployments SET due_at = NULL")
    assert findings(engine) == []


def test_a_rollout_that_waits_for_a_person_needs_no_clock(engine: Engine) -> None:
    make_deployment(engine, "■■■|", status=PROVISIONING)
    ask(engine, "pause", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    assert findings(engine) == []


@pytest.mark.parametrize("cycles", [1, 3])
def test_a_busy_fleet_has_none_at_any_moment(engine: Engine, cycles: int) -> None:
    looks = 0
    for _ in busy_fleet(engine, cycles):
        looks += 1
        assert findings(engine) == []
    assert looks > 50
