"""A rollout held against the plan of its beginning, from its rows: its planned waves, and what came otherwise."""

import re

from sqlalchemy import Engine

from db.audit.receipts import AgainstPlan, against_plan
from db.connection.transactions import in_transaction
from tests.support.rows.deployments import ask, make_deployment, read, start_all, write
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet


def held(engine: Engine) -> AgainstPlan:
    (rollout,) = read(engine, "SELECT id FROM rollouts")
    return in_transaction(engine, lambda connection: against_plan(connection, rollout["id"]))


def begun(engine: Engine, steps: int) -> None:
    make_deployment(engine, "|■■■")
    write(engine, "UPDATE routes SET healthy_at = created_at + interval '1 second'")
    ask(engine, "activate_revision", deployment="web", revision="v1", actor="ann")
    coordinator = coordinator_without_redis(engine)
    for _ in range(steps):
        run_until_quiet(coordinator)
        start_all(engine)


def test_before_its_first_step_there_is_nothing_to_hold(engine: Engine) -> None:
    begun(engine, 0)
    assert held(engine) == AgainstPlan()


def test_its_waves_are_those_that_could_be_foreseen_when_it_began(engine: Engine) -> None:
    begun(engine, 2)
    found = held(engine)
    assert [wave.does for wave in found.waves] == ["create 1, drain 1"] * 3 + [""]
    assert found.seconds is not None
    assert found.deviations == ()
    assert held(engine) == found, "the same question, the same answer"


def test_what_came_otherwise_is_named(engine: Engine) -> None:
    begun(engine, 2)
    write(engine, "UPDATE rollout_steps SET at = at - interval '41 seconds' WHERE step_no = 1")
    (deviation,) = held(engine).deviations
    assert re.match(r"wave 1 took \d+ s, planned 1\.", deviation)
