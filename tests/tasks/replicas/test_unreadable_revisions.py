"""Rows of another release: what cannot be read of one is that route's error, and its neighbours notice nothing."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.due_work import due_statuses, statuses_of
from db.replicas.lost_hosts import fail_routes_of_lost_hosts
from db.views.deployment_views import deployment_named, existing_deployments
from domain.model.states import Lifecycle, RouteStatus
from domain.text.errors import UnreadableError
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, Made, ask, make_deployment, read, write
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.workers.replicas import SERVICE, Runtimes, route, until, until_started
from tests.support.workers.runtimes import pid_of, processes_of

WORSE = [
    ('{"runtime": "podman"}', "revision.runtime: "),
    ('{"health_check": {"interval_seconds": 90000}}', "revision.health_check.interval_seconds: "),
    ('{"drain_seconds": "soon", "stop_grace_seconds": 1e300}', "revision.drain_seconds: "),
    ('{"command": {"image": "web:2"}}', "revision.command: "),
]


def written_by_the_next_release(engine: Engine, made: Made, change: str) -> None:
    write(engine, "UPDATE revisions SET spec = spec || %s::jsonb WHERE deployment_id = %s", change, made.id)


@pytest.fixture
def odd(engine: Engine) -> Made:
    return make_deployment(engine, "◇", name="odd", n=1, status=SCALING, spec=SERVICE)


@pytest.fixture
def web(engine: Engine) -> Made:
    return make_deployment(engine, "◇", name="web", n=1, status=SCALING, spec=SERVICE)


def test_fields_that_this_release_does_not_know_are_left_out(
    engine: Engine, host_replicas: HostReplicas, probe_once: Callable[[], bool], odd: Made, web: Made
) -> None:
    written_by_the_next_release(engine, odd, '{"priority": 5}')
    until_started(host_replicas)
    until(engine, web.routes[0], "healthy", probe_once)
    until(engine, odd.routes[0], "healthy", probe_once)


def test_a_revision_that_cannot_be_read_is_not_started_and_says_why(
    engine: Engine, host_replicas: HostReplicas, probe_once: Callable[[], bool], web: Made
) -> None:
    odd = [make_deployment(engine, "◇", name=f"odd-{n}", n=1, status=SCALING, spec=SERVICE) for n in range(len(WORSE))]
    for made, (change, _) in zip(odd, WORSE, strict=True):
        written_by_the_next_release(engine, made, change)
    until_started(host_replicas)
    until(engine, web.routes[0], "healthy", probe_once)
    for made, (_, field) in zip(odd, WORSE, strict=True):
        failed = route(engine, made.routes[0])
        assert (failed["status"], failed["started_at"]) == ("failed", None)
        assert failed["status_reason"].startswith(f"this release of Rollway cannot read its revision: {field}")


@pytest.mark.parametrize(("change", "field"), WORSE[:2])
def test_a_replica_whose_revision_cannot_be_read_any_more_is_degraded_and_leaves_as_any_other(
    engine: Engine,
    waker: Waker,
    runtimes: Runtimes,
    probe_once: Callable[[], bool],
    odd: Made,
    web: Made,
    change: str,
    field: str,
    replica_home: Path,
) -> None:
    here = HostReplicas(engine, runtimes, waker, HERE, timedelta())
    until_started(here)
    for made in (odd, web):
        until(engine, made.routes[0], "healthy", probe_once)
    written_by_the_next_release(engine, odd, change)
    degraded = until(engine, odd.routes[0], "degraded", probe_once)
    assert field in degraded["status_reason"]
    os.kill(pid_of(runtimes["process"].find(web.routes[0])), signal.SIGKILL)
    until(engine, web.routes[0], "failed", probe_once)
    ask(engine, "destroy", deployment="odd")
    run_until_quiet(coordinator_without_redis(engine))
    if "podman" in change:  # nobody here can stop it; that holds up nobody else
        here.stop()
        assert route(engine, web.routes[0])["stopped_at"] is not None
        return
    eventually(lambda: here.stop() is not None and route(engine, odd.routes[0])["status"] == "terminated")
    assert processes_of(replica_home, odd.routes[0]) == []


def test_words_that_only_a_newer_release_knows_are_left_to_it(
    engine: Engine, host_replicas: HostReplicas, probe_once: Callable[[], bool], odd: Made, web: Made
) -> None:
    until_started(host_replicas)
    until(engine, odd.routes[0], "healthy", probe_once)
    for table, column in (("routes", "status"), ("deployments", "lifecycle")):
        write(engine, f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_check")
    write(engine, "UPDATE routes SET status = 'warming' WHERE id = %s", odd.routes[0])
    write(engine, "UPDATE deployments SET lifecycle = 'archived', due_at = now() WHERE id = %s", odd.id)
    until(engine, web.routes[0], "healthy", probe_once)
    with transaction(engine) as connection:
        assert {status.lifecycle for status in due_statuses(connection)} == {Lifecycle.SCALING}
        assert statuses_of(connection, [odd.id]) == frozenset()
        connection.execute("INSERT INTO hosts (name, address, down_since) VALUES (%s, '', now())", (HERE,))
        assert fail_routes_of_lost_hosts(connection, None) == {web.id}
        assert [view.name for view in existing_deployments(connection)] == ["web"]
        with pytest.raises(UnreadableError, match="no state of a deployment 'archived'; a newer one wrote it"):
            deployment_named(connection, "odd")
    write(engine, "UPDATE deployments SET lifecycle = 'scaling' WHERE id = %s", odd.id)
    with transaction(engine) as connection:
        (shown,) = deployment_named(connection, "odd").routes
    assert shown.status is RouteStatus.DEGRADED
    assert "knows no status of a replica 'warming'" in shown.reason
    assert [row["status"] for row in read(engine, "SELECT status FROM routes ORDER BY id")] == ["warming", "failed"]
