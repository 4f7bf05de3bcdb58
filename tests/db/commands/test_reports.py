"""What other systems report of their replicas, and hosts that are forgotten."""

import threading
from typing import Any

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.cycle.claim import claim_these
from domain.text.errors import InvalidInputError, WrongStateError
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import HERE, ask, drawn, make_deployment, read, write
from tests.support.rows.rows import everything, wait_until_blocked
from tests.support.workers.payloads import ELSEWHERE


@pytest.mark.parametrize("status", ["healthy", "unhealthy", "failed", "stopped"])
def test_a_replica_that_rollway_runs_itself_is_not_reported_by_others(engine: Engine, status: str) -> None:
    made = make_deployment(engine, "■■")
    before = everything(engine)
    with pytest.raises(InvalidInputError, match="route_id: a replica of the runtime 'process' is looked after by"):
        ask(engine, "report_route", route_id=str(made.routes[0]), status=status, address="10.0.0.7:80")
    assert everything(engine) == before


def test_a_replica_that_another_system_runs_is_reported_from_start_to_end(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING, spec=ELSEWHERE)
    route = str(made.routes[2])
    up = ask(engine, "report_route", route_id=route, status="healthy", address="10.0.0.7:80", actor="gpu-fleet")
    assert up.result == {"deployment": "web", "route": route, "status": "healthy", "applied": True}
    assert (drawn(engine, made.id), up.statuses) == ("■■|■", (PROVISIONING,))
    ask(engine, "report_route", route_id=route, status="unhealthy")
    assert drawn(engine, made.id) == "■■|▲"
    ask(engine, "report_route", route_id=route, status="failed", actor="gpu-fleet")
    (row,) = read(engine, "SELECT * FROM routes WHERE id = %s", made.routes[2])
    assert (row["status"], row["traffic_status"], row["address"]) == ("failed", "inactive", "10.0.0.7:80")
    assert row["status_reason"] == "reported failed by gpu-fleet"
    (rollout,) = read(engine, "SELECT failed_routes FROM rollouts")
    assert rollout["failed_routes"] == 1


def test_a_replica_that_another_system_has_stopped_is_gone_and_failed_when_nobody_asked_for_it(engine: Engine) -> None:
    made = make_deployment(engine, "■~✗", n=2, spec=ELSEWHERE)
    for route in made.routes:
        assert ask(engine, "report_route", route_id=str(route), status="stopped").result["applied"] is True
    rows = read(engine, "SELECT status, stopped_at IS NOT NULL AS gone FROM routes ORDER BY id")
    assert [(row["status"], row["gone"]) for row in rows] == [("failed", True), ("terminated", True), ("failed", True)]


def test_a_host_that_is_up_is_not_forgotten_and_one_that_is_down_is(engine: Engine) -> None:
    make_deployment(engine, "■", n=1)
    write(engine, "INSERT INTO hosts (name, address) VALUES (%s, '127.0.0.1')", HERE)
    with pytest.raises(WrongStateError, match="host here is up"):
        ask(engine, "forget_host", host=HERE)
    write(engine, "UPDATE hosts SET down_since = now()")
    done = ask(engine, "forget_host", host=HERE)
    assert (done.result, done.statuses) == ({"host": HERE, "deployments": 1}, ())
    (row,) = read(engine, "SELECT status, stopped_at IS NOT NULL AS gone FROM routes")
    assert (row["status"], row["gone"]) == ("failed", True)


@pytest.mark.parametrize("reported", ["healthy", "unhealthy", "failed"])
@pytest.mark.parametrize("gone", ["~", "✗"])
def test_a_late_report_does_not_bring_a_replica_back_that_is_on_its_way_out(
    engine: Engine, gone: str, reported: str
) -> None:
    made = make_deployment(engine, f"■■{gone}", spec=ELSEWHERE)
    before = everything(engine)
    done = ask(engine, "report_route", route_id=str(made.routes[2]), status=reported, address="10.0.0.7:80")
    assert done.result["applied"] is False
    assert {**everything(engine), "commands": []} == before


def test_a_report_waits_for_whoever_changes_the_route_at_the_moment(engine: Engine) -> None:
    made = make_deployment(engine, "■■■", spec=ELSEWHERE)
    answers: list[dict[str, Any]] = []

    def report() -> None:
        answers.append(ask(engine, "report_route", route_id=str(made.routes[0]), status="failed").result)

    with transaction(engine) as connection:
        claim_these(connection, [made.id])
        connection.execute("UPDATE routes SET status = 'unhealthy' WHERE id = %s", (made.routes[0],))
        reporter = threading.Thread(target=report)
        reporter.start()
        wait_until_blocked(engine)
    reporter.join(10)
    assert answers[0]["applied"] is True
    assert drawn(engine, made.id) == "■■"
