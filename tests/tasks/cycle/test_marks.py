"""The long tick asks SQL for what is off; a fleet in which nothing is off is not written to."""

from typing import Any

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.cycle.claim import mark_what_is_off
from domain.handlers.check_replica import CheckReplicaHandler
from tests.support.pictures.pictures import DESTROYING, PROVISIONING, READY, SCALING
from tests.support.rows.deployments import ask, make_deployment, read, write
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet


def versions(engine: Engine) -> list[dict[str, Any]]:
    """Which transaction wrote each row last."""
    return read(
        engine,
        """
        SELECT 'e' AS of, id::text, xmin::text, ctid::text FROM deployments
        UNION ALL SELECT 'r', id::text, xmin::text, ctid::text FROM routes
        UNION ALL SELECT 'h', id::text, xmin::text, ctid::text FROM deployment_history ORDER BY 1, 2
        """,
    )


def rest(engine: Engine) -> None:
    """As if every deployment had been looked at."""
    write(engine, "UPDATE deployments SET due_at = NULL")


def marked(engine: Engine, status: Any = READY) -> int:
    with transaction(engine) as connection:
        return len(mark_what_is_off(connection, [status]))


def test_a_quiet_fleet_is_not_written_to_by_the_long_tick(engine: Engine) -> None:
    for number in range(20):
        make_deployment(engine, "■■■", name=f"web-{number}")
    coordinator = coordinator_without_redis(engine)
    assert run_until_quiet(coordinator) == 20
    before = versions(engine)
    assert marked(engine) == 0
    assert coordinator.process_chunk(CheckReplicaHandler()).looked_at == 0
    assert versions(engine) == before


@pytest.mark.parametrize("status", [SCALING, PROVISIONING, DESTROYING])
def test_whatever_is_on_its_way_is_marked_and_only_in_the_statuses_asked_for(engine: Engine, status: Any) -> None:
    make_deployment(engine, "■■|◇", name="asked", status=status)
    make_deployment(engine, "■■", name="not-asked", status=READY)
    rest(engine)
    assert marked(engine, status) == 1
    assert read(engine, "SELECT name FROM deployments WHERE due_at IS NOT NULL") == [{"name": "asked"}]


def test_a_lost_wake_is_made_up_for_by_the_long_tick(engine: Engine) -> None:
    made = make_deployment(engine, "■■■")
    rest(engine)
    write(engine, "DELETE FROM routes WHERE id = %s", made.routes[0])
    assert marked(engine) == 1
    run_until_quiet(coordinator_without_redis(engine))
    assert read(engine, "SELECT 1 FROM routes WHERE status = 'provisioning'") != []


def test_a_command_marks_whatever_it_touches(engine: Engine) -> None:
    make_deployment(engine, "■■■")
    for task, payload in (
        ("scale", {"desired_replicas": 4}),
        ("set_policy", {"policy": None}),
        ("activate_revision", {"revision": "v2"}),
        ("destroy", {}),
    ):
        rest(engine)
        ask(engine, task, deployment="web", **payload)
        assert read(engine, "SELECT 1 FROM deployments WHERE due_at <= clock_timestamp()") != [], task
