"""What a crash left: nothing is started twice, and nothing runs on that no route expects."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.replicas.host_routes import routes_to_start
from domain.revisions.revision import RevisionSpec
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import Replica, ReplicaRequest
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import STRANGERS_AT_ONCE, HostReplicas
from tests.support.rows.deployments import HERE, ask
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.workers.replicas import SERVICE, Runtimes, make_route, route, until_started
from tests.support.workers.runtimes import log_of, pid_of, processes_of


def started_by_hand(engine: Engine, runtime: ProcessRuntime) -> Replica:
    """As by a worker that is killed right after, before it could tell anybody."""
    with transaction(engine) as connection:
        (row,) = routes_to_start(connection, HERE, 10)
    return runtime.start(ReplicaRequest(row.id, row.deployment, row.revision, row.spec))


def test_a_crash_between_the_start_and_its_report_starts_nothing_twice(
    engine: Engine, waker: Waker, runtimes: Runtimes, replica_home: Path
) -> None:
    route_id = make_route(engine, {"command": ["sleep", "60"]})
    replica = started_by_hand(engine, runtimes["process"])
    assert route(engine, route_id)["started_at"] is None
    until_started(HostReplicas(engine, {"process": ProcessRuntime(replica_home)}, waker, HERE, timedelta(seconds=5)))
    assert route(engine, route_id)["replica_handle"] == replica.handle
    assert route(engine, route_id)["address"] == replica.address
    eventually(lambda: processes_of(replica_home) == [pid_of(replica)])


def test_a_replica_started_too_late_is_ended_by_the_sweep(
    engine: Engine, host_replicas: HostReplicas, runtimes: Runtimes, replica_home: Path
) -> None:
    """The route was drained and found gone while another worker was starting its replica."""
    route_id = make_route(engine, {"command": ["sleep", "60"]})
    with transaction(engine) as connection:
        (row,) = routes_to_start(connection, HERE, 10)
    ask(engine, "destroy", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    host_replicas.stop()
    assert route(engine, route_id)["status"] == "terminated"
    runtimes["process"].start(ReplicaRequest(row.id, row.deployment, row.revision, row.spec))
    eventually(lambda: len(processes_of(replica_home)) == 1)
    host_replicas.sweep()
    eventually(lambda: processes_of(replica_home) == [])


def test_the_sweep_ends_what_no_route_expects_forgets_what_has_ended_and_leaves_the_rest(
    engine: Engine, host_replicas: HostReplicas, runtimes: Runtimes, replica_home: Path
) -> None:
    expected = make_route(engine, {"command": ["sleep", "60"]})
    until_started(host_replicas)
    stranger = uuid4()
    runtimes["process"].start(ReplicaRequest(stranger, "web", "v0", RevisionSpec(command=("sleep", "60"))))
    eventually(lambda: len(processes_of(replica_home)) == 2)
    host_replicas.sweep()
    eventually(lambda: len(processes_of(replica_home)) == 1)
    assert runtimes["process"].find(expected).running  # type: ignore[union-attr]
    eventually(lambda: host_replicas.sweep() is False and runtimes["process"].find(stranger) is None)
    assert processes_of(replica_home, expected) != []


def test_replicas_whose_routes_the_database_never_had_are_asked_to_end_three_at_a_time(
    host_replicas: HostReplicas, runtimes: Runtimes, replica_home: Path
) -> None:
    """As after an older backup was restored: they may serve somebody."""
    spec = RevisionSpec(command=("sh", "-c", "trap 'echo asked; exit' TERM; echo up; while :; do sleep 0.05; done"))
    strangers = [uuid4() for _ in range(5)]
    for stranger in strangers:
        runtimes["process"].start(ReplicaRequest(stranger, "web", "v0", spec))
        log_of(runtimes["process"], stranger, "up")
    host_replicas.sweep()
    asked = [stranger for stranger in strangers if "asked" in runtimes["process"].log_tail(stranger, 5)]
    assert len(asked) == STRANGERS_AT_ONCE == 3
    host_replicas.sweep()
    eventually(lambda: processes_of(replica_home) == [])
    assert all("asked" in runtimes["process"].log_tail(stranger, 5) for stranger in strangers)


def test_a_running_route_without_a_replica_is_failed(engine: Engine, probe_once: Callable[[], bool]) -> None:
    route_id = make_route(engine, SERVICE, "■")
    probe_once()
    assert (route(engine, route_id)["status"], route(engine, route_id)["status_reason"]) == (
        "failed",
        "its process is gone",
    )
