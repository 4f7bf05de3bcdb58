"""What proxies may know, read again and again: a reader that remembers sees what one that begins sees."""

from typing import LiteralString

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.proxies.traffic_reader import TrafficReader, read_traffic
from domain.traffic.snapshot import DeploymentInTraffic, TrafficSnapshot
from tests.support.pictures.pictures import PROVISIONING
from tests.support.pictures.policies import CANARY
from tests.support.rows.deployments import Made, make_deployment, write

CHANGES: tuple[LiteralString, ...] = (
    "UPDATE routes SET status = 'unhealthy' WHERE id = %(first)s",
    "UPDATE routes SET address = '127.0.0.1:2' WHERE id = %(first)s",
    "UPDATE routes SET address = NULL WHERE id = %(first)s",
    "UPDATE routes SET traffic_ratio = 0.5 WHERE id = %(first)s",
    "UPDATE routes SET traffic_status = 'inactive' WHERE id = %(last)s",
    """UPDATE routes SET status = 'terminating', traffic_status = 'inactive', drain_started_at = now()
        WHERE id = %(last)s""",
    """UPDATE routes SET status = 'terminating', traffic_status = 'inactive', drain_started_at = now(),
                         stop_requested_at = now() WHERE id = %(last)s""",
    "DELETE FROM routes WHERE id = %(first)s",
    "UPDATE entrances SET strip_prefix = NOT strip_prefix WHERE deployment_id = %(id)s",
    "INSERT INTO entrances (kind, value, deployment_id) VALUES ('host', 'shop', %(id)s)",
    "DELETE FROM entrances WHERE deployment_id = %(id)s",
    "UPDATE deployments SET request_timeout_seconds = 3 WHERE id = %(id)s",
    "UPDATE rollouts SET weight = 100, stage = 1 WHERE deployment_id = %(id)s",
    "UPDATE rollouts SET stage = 1, ended_at = now(), outcome = 'completed' WHERE deployment_id = %(id)s",
)


def read(engine: Engine, reader: TrafficReader) -> TrafficSnapshot:
    with transaction(engine) as connection:
        return reader.read(connection)


def read_anew(engine: Engine) -> tuple[tuple[DeploymentInTraffic, ...], tuple[str, ...]]:
    with transaction(engine) as connection:
        found = read_traffic(connection)
    return found.deployments, found.faults


def named(found: TrafficSnapshot, made: Made) -> DeploymentInTraffic:
    return next(deployment for deployment in found.deployments if deployment.name == made.name)


def parameters(made: Made) -> dict[str, object]:
    return {"id": made.id, "first": made.routes[0], "last": made.routes[-1]}


def change(engine: Engine, query: LiteralString, made: Made) -> None:
    with transaction(engine) as connection:
        connection.execute("SET LOCAL session_replication_role = replica")  # what no guard lets in is read too
        connection.execute(query, parameters(made))


@pytest.mark.parametrize("query", CHANGES)
def test_whatever_is_written_is_read_and_nothing_else_is_made_anew(engine: Engine, query: LiteralString) -> None:
    web = make_deployment(engine, "■|■", n=1, name="web", status=PROVISIONING, policy=CANARY)
    others = [make_deployment(engine, "■■", name=name) for name in ("api", "zoo")]
    write(engine, "INSERT INTO entrances (kind, value, deployment_id) VALUES ('prefix', '/web/', %s)", web.id)
    reader = TrafficReader()
    before = read(engine, reader)
    change(engine, query, web)
    after = read(engine, reader)
    assert (after.deployments, after.faults) == read_anew(engine)
    assert named(after, web) != named(before, web)
    assert all(named(after, other) is named(before, other) for other in others)


def test_deployments_come_and_go(engine: Engine) -> None:
    reader, web = TrafficReader(), make_deployment(engine, "■", name="web")
    assert [deployment.name for deployment in read(engine, reader).deployments] == ["web"]
    make_deployment(engine, "■", name="api")
    seen = read(engine, reader)
    assert [deployment.name for deployment in seen.deployments] == ["api", "web"]
    write(engine, "UPDATE deployments SET lifecycle = 'destroyed' WHERE id = %s", web.id)
    assert [deployment.name for deployment in read(engine, reader).deployments] == ["api"]


def test_what_proxies_are_not_told_of_changes_nothing(engine: Engine) -> None:
    reader, web = TrafficReader(), make_deployment(engine, "■", name="web")
    before = read(engine, reader)
    write(engine, "UPDATE deployments SET due_at = now(), version = version + 1 WHERE id = %s", web.id)
    after = read(engine, reader)
    assert after.deployments[0] is before.deployments[0]
    assert read(engine, reader).deployments is after.deployments


def test_a_weight_is_forgotten_a_minute_after_its_rollout(engine: Engine) -> None:
    web = make_deployment(engine, "■|■", n=1, name="web", status=PROVISIONING, policy=CANARY)
    reader = TrafficReader()
    change(engine, "UPDATE rollouts SET stage = 1, ended_at = now(), outcome = 'completed'", web)
    assert named(read(engine, reader), web).canary
    change(engine, "UPDATE rollouts SET ended_at = ended_at - interval '2 minutes'", web)
    assert not named(read(engine, reader), web).canary
