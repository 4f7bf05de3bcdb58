"""Replicas leave in order: out of traffic, their grace, SIGTERM, gone."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import redis
from sqlalchemy import Engine
from structlog.testing import capture_logs

from db.audit.invariants import impossible_combinations
from db.connection.transactions import in_transaction
from runtime.docker.docker_runtime import DockerRuntime
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tests.support.pictures.pictures import PROVISIONING, SCALING
from tests.support.rows.deployments import HERE, ask, drawn, make_deployment, read, write
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.workers.queues import waiting
from tests.support.workers.replicas import SERVICE, STUBBORN, Runtimes, make_route, route, until, until_started
from tests.support.workers.runtimes import is_running, log_of, pid_of, processes_of


def test_a_replica_leaves_in_order_out_of_traffic_grace_sigterm_gone(
    engine: Engine,
    host_replicas: HostReplicas,
    runtimes: Runtimes,
    redis_client: redis.Redis,
    probe_once: Callable[[], bool],
) -> None:
    route_id = make_route(engine, {**SERVICE, "drain_seconds": 60})
    until_started(host_replicas)
    until(engine, route_id, "healthy", probe_once)
    ask(engine, "destroy", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    assert (route(engine, route_id)["status"], route(engine, route_id)["traffic_status"]) == ("terminating", "inactive")
    assert host_replicas.stop() is True
    assert route(engine, route_id)["stop_requested_at"] is None, "requests in flight come first"
    passed = "drain_started_at - interval '1 minute', out_of_traffic_at = out_of_traffic_at - interval '1 minute'"
    write(engine, f"UPDATE routes SET drain_started_at = {passed}")
    eventually(lambda: not host_replicas.stop())
    gone = route(engine, route_id)
    assert gone["status"] == "terminated"
    drained, asked, stopped = gone["drain_started_at"], gone["stop_requested_at"], gone["stopped_at"]
    assert drained < asked < stopped
    assert (asked - drained).total_seconds() >= 60
    assert log_of(runtimes["process"], route_id, "stopped"), "it ended by itself, not by force"
    assert waiting(redis_client, "lifecycle")[-1][1]["lifecycle_type"] == "destroying"
    run_until_quiet(coordinator_without_redis(engine))
    assert read(engine, "SELECT lifecycle FROM deployments") == [{"lifecycle": "destroyed"}]


def test_a_replica_that_ignores_sigterm_is_killed_after_its_grace(
    engine: Engine, host_replicas: HostReplicas, runtimes: Runtimes, probe_once: Callable[[], bool]
) -> None:
    route_id = make_route(engine, {"command": list(STUBBORN), "drain_seconds": 0, "stop_grace_seconds": 0.3})
    until_started(host_replicas)
    probe_once()
    log_of(runtimes["process"], route_id, "up")
    pid = pid_of(runtimes["process"].find(route_id))
    ask(engine, "destroy", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    why = "killed after 0.3 s: it did not end on SIGTERM"
    with capture_logs() as lines:
        eventually(lambda: not host_replicas.stop())
    assert [(line["to"], line["log_level"]) for line in lines] == [("killed", "warning"), ("gone", "info")]
    assert lines[0]["reason"] == why
    gone = route(engine, route_id)
    assert (gone["stopped_at"] - gone["stop_requested_at"]).total_seconds() >= 0.3
    assert (gone["status"], gone["status_reason"]) == ("terminated", why)
    told = read(engine, "SELECT result, actor, message FROM deployment_history WHERE phase = 'stop'")
    assert told == [{"result": "killed", "actor": HERE, "message": why}]
    assert not is_running(pid)
    assert runtimes["process"].log_tail(route_id, 5).splitlines()[:2] == ["up", "no"]


def test_an_engine_that_is_away_fails_nobody_and_holds_up_nobody_else(
    engine: Engine, waker: Waker, runtimes: Runtimes, tmp_path: Path
) -> None:
    away = DockerRuntime(HERE, f"unix://{tmp_path}/nobody.sock")
    both = HostReplicas(engine, {**runtimes, "docker": away}, waker, HERE, timedelta(seconds=5))
    in_docker = {"runtime": "docker", "docker": {"image": "busybox"}, "drain_seconds": 0}
    contained = make_deployment(engine, "◇■", name="box", n=2, status=SCALING, spec=in_docker).routes
    process = make_route(engine, SERVICE)
    until_started(both)
    assert [route(engine, route_id)["started_at"] is None for route_id in (*contained[:1], process)] == [True, False]
    for name in ("box", "web"):
        ask(engine, "destroy", deployment=name)
    run_until_quiet(coordinator_without_redis(engine))
    eventually(lambda: both.stop() is False and route(engine, process)["status"] == "terminated")
    assert route(engine, contained[0])["status"] == "terminated", "it was never started"
    assert route(engine, contained[1])["status"] == "terminating", "nothing is known of it"
    both.sweep()


def test_a_route_that_is_drained_before_its_replica_was_started_is_gone_at_once(
    engine: Engine, host_replicas: HostReplicas, replica_home: Path
) -> None:
    route_id = make_route(engine, SERVICE)
    ask(engine, "destroy", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    until_started(host_replicas)
    assert host_replicas.stop() is False
    assert route(engine, route_id)["status"] == "terminated"
    assert processes_of(replica_home) == []


def test_what_nobody_can_stop_is_destroyed_by_force_and_what_runs_of_it_is_swept(
    engine: Engine, waker: Waker, runtimes: Runtimes, replica_home: Path, tmp_path: Path
) -> None:
    away = DockerRuntime(HERE, f"unix://{tmp_path}/nobody.sock")
    host = HostReplicas(engine, {**runtimes, "docker": away}, waker, HERE, timedelta())
    in_docker = {"runtime": "docker", "docker": {"image": "busybox"}, "drain_seconds": 0}
    box = make_deployment(engine, "■■|◇", name="box", n=2, status=PROVISIONING, spec=in_docker)
    web = make_route(engine, {"command": ["sleep", "60"]})
    until_started(host)
    eventually(lambda: len(processes_of(replica_home, web)) == 1)
    ask(engine, "destroy", deployment="box")
    run_until_quiet(coordinator_without_redis(engine))
    host.stop()
    assert drawn(engine, box.id) == "", "all leave"
    assert read(engine, "SELECT lifecycle FROM deployments WHERE name = 'box'") == [{"lifecycle": "destroying"}]
    for name in ("box", "web"):
        ask(engine, "destroy", deployment=name, force=True, reason="the engine is gone")
    run_until_quiet(coordinator_without_redis(engine))
    assert read(engine, "SELECT DISTINCT lifecycle FROM deployments") == [{"lifecycle": "destroyed"}]
    routes = read(engine, "SELECT DISTINCT status, traffic_status, stopped_at IS NULL AS runs FROM routes")
    assert routes == [{"status": "terminated", "traffic_status": "inactive", "runs": False}]
    said = "SELECT message FROM deployment_history WHERE deployment_id = %s AND message LIKE '%%force%%'"
    assert read(engine, said, box.id)[0]["message"].endswith("taken as stopped: the engine is gone")
    assert in_transaction(engine, impossible_combinations) == []
    host.sweep()
    eventually(lambda: processes_of(replica_home) == [])
