"""What runs on a silent host is degraded before the host is lost: only its own workers could probe it."""

from uuid import UUID

from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.lost_hosts import degrade_silent_routes, fail_routes_of_lost_hosts
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import HERE, drawn, make_deployment, read, snapshot, write
from tests.support.rows.hosts import LOOKS, look, silent, up


def degrade(engine: Engine, limit: int = 10) -> frozenset[UUID]:
    return in_transaction(engine, lambda connection: degrade_silent_routes(connection, LOOKS - 1, limit))


def test_what_a_silent_host_runs_is_degraded_before_it_is_lost(engine: Engine) -> None:
    up(engine, HERE)
    made = make_deployment(engine, "■▲|□◇~", n=3, status=PROVISIONING)
    write(engine, "UPDATE deployments SET due_at = NULL")
    silent(engine, HERE)
    look(engine)
    assert degrade(engine) == frozenset(), "its probes are fresh enough"
    before = snapshot(engine, made.id)
    look(engine)
    assert degrade(engine) == {made.id}
    assert drawn(engine, made.id) == "△△|△◇"
    assert degrade(engine) == frozenset()
    assert snapshot(engine, made.id).version > before.version
    rows = read(engine, "SELECT status_reason, traffic_status FROM routes WHERE status = 'degraded' ORDER BY id")
    assert {row["traffic_status"] for row in rows} == {"active", "inactive"}, "proxies decide about a sick one"
    assert all("its host here has been silent for 3" in row["status_reason"] for row in rows)
    (deployment,) = read(engine, "SELECT failed_starts, due_at <= clock_timestamp() AS due FROM deployments")
    assert (deployment["failed_starts"], deployment["due"]) == (0, True)
    assert read(engine, "SELECT failed_routes FROM rollouts") == [{"failed_routes": 0}]
    assert look(engine) == ([HERE], [])
    assert in_transaction(engine, lambda connection: fail_routes_of_lost_hosts(connection, 10)) == {made.id}
    assert read(engine, "SELECT count(*) AS failed FROM routes WHERE status = 'failed'") == [{"failed": 4}]


def test_the_routes_of_a_silent_host_are_degraded_some_at_a_time(engine: Engine) -> None:
    up(engine, HERE, "there")
    made = make_deployment(engine, "■■■■", n=4)
    write(engine, "UPDATE routes SET host = 'there' WHERE id = %s", made.routes[3])
    silent(engine, HERE)
    for _ in range(LOOKS - 1):
        look(engine)
    pictures = [drawn(engine, made.id) for _ in range(3) if degrade(engine, limit=2) or True]
    assert pictures == ["■■△△", "■△△△", "■△△△"]


def test_an_hour_in_which_nobody_looked_degrades_nothing(engine: Engine) -> None:
    up(engine, HERE)
    made = make_deployment(engine, "■▲")
    silent(engine, HERE)
    look(engine)
    up(engine, HERE)
    for _ in range(LOOKS):
        look(engine)
        assert degrade(engine) == frozenset()
    assert drawn(engine, made.id) == "■▲"
