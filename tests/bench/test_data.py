"""The fleets that are measured are what they say, and the floor leaves the same rows as the coordinator."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

from domain.handlers.dispatch import HANDLERS
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import read
from tests.support.workers.coordinators import coordinator_without_redis, handler_for, run_until_quiet
from tools.bench.cycles.floor import run_floor
from tools.bench.data import MUTATING, QUIET, WAITING, fill, mark_all

COUNT = 60
LEFT = {
    "routes": "SELECT status, traffic_status, count(*) FROM routes GROUP BY 1, 2 ORDER BY 1, 2",
    "deployments": "SELECT lifecycle, version, due_at > now(), count(*) FROM deployments GROUP BY 1, 2, 3",
    "rollouts": "SELECT steps, outcome, count(*) FROM rollouts GROUP BY 1, 2 ORDER BY 1",
    "rollout_steps": "SELECT step_no, phase, verdict, count(*) FROM rollout_steps GROUP BY 1, 2, 3 ORDER BY 1",
    "deployment_history": "SELECT result, attempts, count(*) FROM deployment_history GROUP BY 1, 2 ORDER BY 1, 2",
}


@pytest.fixture
def maker(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def left(maker: psycopg.Connection) -> Mapping[str, Any]:
    return {table: maker.execute(query).fetchall() for table, query in LEFT.items()}


def made(maker: psycopg.Connection) -> Sequence[Any]:
    return [
        maker.execute(query).fetchall()
        for query in (
            "SELECT id, name, lifecycle, rollout_id, now() - created_at < '8 days' FROM deployments ORDER BY id",
            "SELECT id, deployment_id, revision_id, status FROM routes ORDER BY id",
        )
    ]


def test_a_seed_always_makes_the_same_fleet_and_another_seed_another(maker: psycopg.Connection) -> None:
    fleets = []
    for seed in (1, 1, 2):
        fill(maker, MUTATING, COUNT, seed)
        fleets.append(made(maker))
    assert fleets[0] == fleets[1] != fleets[2]


def test_each_deployment_of_a_mutating_fleet_creates_one_and_drains_one(
    engine: Engine, maker: psycopg.Connection
) -> None:
    fill(maker, MUTATING, COUNT)
    mark_all(maker)
    done = coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert (done.looked_at, done.applied.created, done.applied.drained) == (COUNT, COUNT, COUNT)
    (row,) = read(engine, "SELECT count(DISTINCT deployment_id) AS c FROM routes WHERE status = 'provisioning'")
    assert row["c"] == COUNT


def test_each_deployment_of_a_waiting_fleet_waits(engine: Engine, maker: psycopg.Connection) -> None:
    fill(maker, WAITING, COUNT)
    mark_all(maker)
    done = coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert done.glanced == COUNT


def test_a_quiet_fleet_has_nothing_to_do(engine: Engine, maker: psycopg.Connection) -> None:
    fill(maker, QUIET, COUNT)
    coordinator = coordinator_without_redis(engine)
    assert run_until_quiet(coordinator) == 0
    mark_all(maker)
    assert run_until_quiet(coordinator, HANDLERS.values()) == COUNT
    assert read(engine, "SELECT DISTINCT lifecycle, version FROM deployments") == [{"lifecycle": "ready", "version": 1}]


@pytest.mark.decides_wrongly
def test_the_floor_leaves_as_many_rows_in_the_same_states_as_the_coordinator(
    engine: Engine, maker: psycopg.Connection
) -> None:
    fill(maker, MUTATING, COUNT)
    mark_all(maker)
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    ours = left(maker)
    (step,) = maker.execute("SELECT inputs::text, decision::text FROM rollout_steps LIMIT 1").fetchall()

    fill(maker, MUTATING, COUNT)
    mark_all(maker)
    assert run_floor(maker, 25, *step) == COUNT
    assert left(maker) == ours
    assert len(ours["deployment_history"]) > 1
