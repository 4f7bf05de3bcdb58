"""A report that Postgres refuses, and a replica whose last words no text can hold, are their own routes' affair."""

import os
import signal
from collections.abc import Callable

import psycopg
import pytest
from sqlalchemy import Engine

from db.replicas.reports import RouteReport
from domain.model.states import RouteStatus
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tasks.replicas.reporting import write_reports
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import make_deployment, read
from tests.support.rows.refused_writes import TRANSACTION_TIMEOUT, refused_writes
from tests.support.workers.replicas import SERVICE, Runtimes, until, until_started
from tests.support.workers.runtimes import pid_of, python


def healthy(engine: Engine, *, but: int, reason: str) -> tuple[RouteReport, ...]:
    """Of seven starting routes that all came up; the report of one of them is made bad."""
    made = make_deployment(engine, "◇◇◇◇◇◇◇", n=7, status=SCALING)
    started = "UPDATE routes SET started_at = clock_timestamp() RETURNING id"
    ids = [row["id"] for row in read(engine, started)]
    good = [RouteReport(of, made.id, RouteStatus.PROVISIONING, RouteStatus.HEALTHY, reason="up") for of in ids]
    worse = RouteReport(ids[but], made.id, RouteStatus.PROVISIONING, RouteStatus.HEALTHY, reason=reason)
    return (*good[:but], worse, *good[but + 1 :])


@pytest.mark.parametrize("position", [0, 3, 6])
@pytest.mark.parametrize("text", ["bye\0bye", "half a \ud800 letter"])
def test_a_report_that_postgres_refuses_fails_its_route_and_no_other(
    engine: Engine, waker: Waker, text: str, position: int
) -> None:
    reports = healthy(engine, but=position, reason=text)
    write_reports(engine, waker, reports)
    found = {row["id"]: row for row in read(engine, "SELECT id, status, status_reason FROM routes")}
    bad = found.pop(reports[position].route_id)
    assert {row["status"] for row in found.values()} == {"healthy"}
    assert bad["status"] == "failed"
    assert bad["status_reason"].startswith("what became of it cannot be written: ")


def test_reports_that_took_postgres_too_long_fail_no_route_and_can_be_made_again(engine: Engine, waker: Waker) -> None:
    reports = healthy(engine, but=0, reason="up")
    with pytest.raises(psycopg.errors.TransactionTimeout), refused_writes(engine, "routes", TRANSACTION_TIMEOUT):
        write_reports(engine, waker, reports)
    assert {row["status"] for row in read(engine, "SELECT status FROM routes")} == {"provisioning"}
    write_reports(engine, waker, reports)
    assert {row["status"] for row in read(engine, "SELECT status FROM routes")} == {"healthy"}


def test_a_replica_that_prints_a_nul_before_it_dies_hides_no_other(
    engine: Engine, host_replicas: HostReplicas, runtimes: Runtimes, probe_once: Callable[[], bool]
) -> None:
    dies = {"command": list(python("import sys; sys.stdout.buffer.write(b'bye\\0bye\\xff'); sys.exit(3)"))}
    (bye,) = make_deployment(engine, "◇", name="bye", n=1, status=SCALING, spec=dies).routes
    (web,) = make_deployment(engine, "◇", name="web", n=1, status=SCALING, spec=SERVICE).routes
    until_started(host_replicas)
    until(engine, web, "healthy", probe_once)
    gone = until(engine, bye, "failed", probe_once)
    assert (gone["status_reason"], gone["log_tail"]) == ("its process ended with exit code 3", "bye\ufffdbye\ufffd")
    os.kill(pid_of(runtimes["process"].find(web)), signal.SIGKILL)
    until(engine, web, "failed", probe_once)
