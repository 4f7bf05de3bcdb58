"""Real replicas of routes: started once, and probed until they are well."""

from collections.abc import Callable
from pathlib import Path

import psutil
import redis
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.heartbeats import show_sign_of_life
from db.replicas.host_placement import place_routes
from domain.replicas.health import RUNS_WELL
from tasks.messaging.queues import host_queue
from tasks.replicas.host_replicas import HostReplicas
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, ask, drawn, make_deployment, read, snapshot, write
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.workers.queues import waiting
from tests.support.workers.replicas import QUICK, SERVICE, Runtimes, make_route, post, route, until, until_started
from tests.support.workers.runtimes import pid_of, processes_of


def test_a_replica_is_started_becomes_healthy_breaks_and_mends(
    engine: Engine, host_replicas: HostReplicas, redis_client: redis.Redis, probe_once: Callable[[], bool]
) -> None:
    route_id = make_route(engine, SERVICE)
    until_started(host_replicas)
    started = route(engine, route_id)
    assert started["status"] == "provisioning"
    assert started["started_at"] >= started["created_at"]
    assert started["replica_handle"].startswith("pid:")
    assert waiting(redis_client, host_queue(HERE))[0][1] == {"route_lifecycle_type": "probe", "host": HERE}

    healthy = until(engine, route_id, "healthy", probe_once)
    assert [arguments["lifecycle_type"] for _, arguments in waiting(redis_client, "lifecycle")] == ["scaling"]
    assert probe_once() is False, "nothing is starting any more"

    post(healthy["address"], "/break")
    streaks: set[int] = set()

    def look_at_the_streak() -> bool:
        streaks.add(route(engine, route_id)["probe_streak"])
        return probe_once()

    unhealthy = until(engine, route_id, "unhealthy", look_at_the_streak)
    assert streaks == {0, 1}, "one failed probe is not enough"
    assert "503" in unhealthy["status_reason"]
    assert unhealthy["traffic_status"] == "active", "ejecting a sick one is the proxy's job"

    post(healthy["address"], "/mend")
    assert until(engine, route_id, "healthy", probe_once)["started_at"] == started["started_at"]


def test_a_replica_without_a_health_check_is_healthy_once_it_has_run_for_a_while(
    engine: Engine, host_replicas: HostReplicas, probe_once: Callable[[], bool]
) -> None:
    route_id = make_route(engine, {"command": ["sleep", "60"]})
    until_started(host_replicas)
    until(engine, route_id, "healthy", probe_once)
    ran = read(engine, "SELECT extract(epoch FROM status_changed_at - started_at) AS seconds FROM routes")
    assert ran[0]["seconds"] >= RUNS_WELL.total_seconds()
    write(engine, "UPDATE routes SET status = 'degraded'")
    until(engine, route_id, "healthy", probe_once)


def test_a_replica_that_was_killed_is_failed_with_why_and_its_last_words(
    engine: Engine, host_replicas: HostReplicas, runtimes: Runtimes, probe_once: Callable[[], bool]
) -> None:
    route_id = make_route(engine, SERVICE)
    until_started(host_replicas)
    until(engine, route_id, "healthy", probe_once)
    psutil.Process(pid_of(runtimes["process"].find(route_id))).kill()
    failed = until(engine, route_id, "failed", probe_once)
    assert failed["status_reason"] == "its process was killed by SIGKILL"
    assert "v1 listens on port" in failed["log_tail"]
    assert failed["traffic_status"] == "inactive"
    (row,) = read(engine, "SELECT failed_starts, due_at <= clock_timestamp() AS due FROM deployments")
    assert (row["failed_starts"], row["due"]) == (1, True)
    assert host_replicas.stop() is False
    assert route(engine, route_id)["stopped_at"] is not None
    assert route(engine, route_id)["status"] == "failed"


def test_a_replica_that_cannot_start_is_failed_at_once(engine: Engine, host_replicas: HostReplicas) -> None:
    route_id = make_route(engine, {"command": ["/no/such/command"]})
    until_started(host_replicas)
    failed = route(engine, route_id)
    assert failed["status"] == "failed"
    assert failed["status_reason"] == "the command '/no/such/command' of revision 'v1' was not found on this host"


def test_a_replica_that_exits_at_its_start_is_failed_with_what_it_said(
    engine: Engine, host_replicas: HostReplicas, probe_once: Callable[[], bool]
) -> None:
    route_id = make_route(engine, {**SERVICE, "env": {"BROKEN": "start"}})
    until_started(host_replicas)
    failed = until(engine, route_id, "failed", probe_once)
    assert (failed["status_reason"], failed["log_tail"]) == (
        "its process ended with exit code 1",
        "cannot start: BROKEN=start",
    )


def test_a_replica_that_never_gets_well_is_failed_at_its_start_deadline(
    engine: Engine, host_replicas: HostReplicas, runtimes: Runtimes, probe_once: Callable[[], bool]
) -> None:
    check = {**QUICK, "start_deadline_seconds": 1}
    route_id = make_route(engine, {**SERVICE, "health_check": check, "env": {"BROKEN": "health"}})
    until_started(host_replicas)
    failed = until(engine, route_id, "failed", probe_once)
    assert failed["status_reason"].startswith("not healthy within 1 s of its start: ")
    assert (failed["status_changed_at"] - failed["started_at"]).total_seconds() >= 1
    eventually(lambda: host_replicas.stop() is False)
    assert runtimes["process"].find(route_id).running is False  # type: ignore[union-attr]


def test_only_what_is_not_healthy_is_probed_at_every_look(
    engine: Engine, host_replicas: HostReplicas, probe_once: Callable[[], bool]
) -> None:
    slow = {"interval_seconds": 3600, "start_deadline_seconds": 30}
    route_id = make_route(engine, {**SERVICE, "health_check": slow, "env": {"STARTUP_SECONDS": "0.5"}})
    until_started(host_replicas)
    healthy = until(engine, route_id, "healthy", probe_once)
    post(healthy["address"], "/break")
    for _ in range(5):
        probe_once()
    assert route(engine, route_id)["probe_streak"] == 0


def test_a_whole_rollout_of_real_replicas(
    engine: Engine, host_replicas: HostReplicas, replica_home: Path, probe_once: Callable[[], bool]
) -> None:
    made = make_deployment(engine, "", n=2, status=SCALING, spec={**SERVICE, "drain_seconds": 0})
    write(engine, "UPDATE deployments SET current_revision_id = %s", made.v1)
    in_transaction(engine, lambda connection: show_sign_of_life(connection, HERE, "127.0.0.1"))
    coordinator = coordinator_without_redis(engine)
    seen: list[str] = []

    def turn() -> None:
        run_until_quiet(coordinator)
        in_transaction(engine, lambda connection: place_routes(connection, 10))
        until_started(host_replicas)
        probe_once()
        host_replicas.stop()
        seen.append(drawn(engine, made.id))

    def ready() -> bool:
        turn()
        return str(snapshot(engine, made.id).status) == "ready"

    eventually(ready)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    eventually(ready)
    assert not {"■|◇", "■|■"}.isdisjoint(seen), "old and new side by side"
    assert max(len(picture.replace("|", "")) for picture in seen) <= 3
    running = read(engine, "SELECT replica_handle FROM routes WHERE revision_id = %s AND status = 'healthy'", made.v2)
    eventually(lambda: host_replicas.stop() is False)
    assert sorted(f"pid:{pid}" for pid in processes_of(replica_home)) == sorted(
        row["replica_handle"] for row in running
    )
