"""Real replicas of routes: started once, probed until they are well, drained in order, and swept up after a crash."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from uuid import UUID, uuid4

import psutil
import pytest
import redis
from sqlalchemy import Engine

from db.engine import in_transaction, transaction
from db.replicas.hosts import place_routes, show_sign_of_life
from db.replicas.routes import routes_to_start
from domain.replicas.revision import RevisionSpec
from runtime.base import Replica, ReplicaRequest
from runtime.docker import DockerRuntime
from runtime.probes import Prober
from runtime.process import ProcessRuntime
from tasks.redis.wake import Waker
from tasks.replicas.probing import ProbePass
from tasks.replicas.start_stop import HostReplicas
from tasks.settings import host_queue
from tests.support.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.deployments import HERE, ask, drawn, make_deployment, read, snapshot, write
from tests.support.pictures import SCALING
from tests.support.queues import waiting
from tests.support.runtimes import HTTP_SERVICE, is_running, log_of, pid_of, processes_of, python
from tests.support.waiting import eventually

QUICK = {"interval_seconds": 0.1, "failure_threshold": 2, "timeout_seconds": 1}
SERVICE: dict[str, Any] = {"command": list(HTTP_SERVICE), "health_check": QUICK, "drain_seconds": 0.2}
STUBBORN = python(
    "import signal, time; signal.signal(signal.SIGTERM, lambda *_: print('no', flush=True));"
    "print('up', flush=True); time.sleep(60)"
)

Runtimes = dict[str, ProcessRuntime]


@pytest.fixture
def look(engine: Engine, runtimes: Runtimes, waker: Waker, client: redis.Redis) -> Iterator[Callable[[], bool]]:
    with closing(Prober()) as prober:
        yield ProbePass(engine, runtimes, waker, client, HERE, prober).look


@pytest.fixture
def here(engine: Engine, runtimes: Runtimes, waker: Waker) -> HostReplicas:
    return HostReplicas(engine, runtimes, waker, HERE, timedelta(seconds=5))


def one(engine: Engine, spec: dict[str, Any], picture: str = "◇") -> UUID:
    return make_deployment(engine, picture, n=len(picture), status=SCALING, spec=spec).routes[0]


def route(engine: Engine, route_id: UUID) -> dict[str, Any]:
    (row,) = read(engine, "SELECT * FROM routes WHERE id = %s", route_id)
    return row


def until(engine: Engine, route_id: UUID, status: str, look: Callable[[], bool]) -> dict[str, Any]:
    """Look again and again until the route has this status."""
    eventually(lambda: look() is not None and route(engine, route_id)["status"] == status, 15)
    return route(engine, route_id)


def post(address: str, path: str) -> None:
    with urlopen(Request(f"http://{address}{path}", method="POST"), timeout=5) as answer:
        assert answer.status == 200


def test_a_replica_is_started_becomes_healthy_breaks_and_mends(
    engine: Engine, here: HostReplicas, client: redis.Redis, look: Callable[[], bool]
) -> None:
    route_id = one(engine, SERVICE)
    assert here.start() is False
    started = route(engine, route_id)
    assert started["status"] == "provisioning"
    assert started["started_at"] >= started["created_at"]
    assert started["replica_handle"].startswith("pid:")
    assert waiting(client, host_queue(HERE))[0][1] == {"route_lifecycle_type": "probe", "host": HERE}

    healthy = until(engine, route_id, "healthy", look)
    assert [arguments["lifecycle_type"] for _, arguments in waiting(client, "lifecycle")] == ["scaling"]
    assert look() is False, "nothing is starting any more"

    post(healthy["address"], "/break")
    streaks: set[int] = set()

    def look_at_the_streak() -> bool:
        streaks.add(route(engine, route_id)["probe_streak"])
        return look()

    unhealthy = until(engine, route_id, "unhealthy", look_at_the_streak)
    assert streaks == {0, 1}, "one failed probe is not enough"
    assert "503" in unhealthy["status_reason"]
    assert unhealthy["traffic_status"] == "active", "ejecting a sick one is the proxy's job"

    post(healthy["address"], "/mend")
    assert until(engine, route_id, "healthy", look)["started_at"] == started["started_at"]


def test_a_replica_without_a_health_check_is_healthy_once_it_runs(
    engine: Engine, here: HostReplicas, look: Callable[[], bool]
) -> None:
    route_id = one(engine, {"command": ["sleep", "60"]})
    here.start()
    look()
    assert route(engine, route_id)["status"] == "healthy"
    write(engine, "UPDATE routes SET status = 'degraded'")
    until(engine, route_id, "healthy", look)


def test_a_replica_that_was_killed_is_failed_with_why_and_its_last_words(
    engine: Engine, here: HostReplicas, runtimes: Runtimes, look: Callable[[], bool]
) -> None:
    route_id = one(engine, SERVICE)
    here.start()
    until(engine, route_id, "healthy", look)
    psutil.Process(pid_of(runtimes["process"].find(route_id))).kill()
    failed = until(engine, route_id, "failed", look)
    assert failed["status_reason"] == "its process ended with exit code -9"
    assert "v1 listens on port" in failed["log_tail"]
    assert failed["traffic_status"] == "inactive"
    (row,) = read(engine, "SELECT failed_starts, due_at <= clock_timestamp() AS due FROM deployments")
    assert (row["failed_starts"], row["due"]) == (1, True)
    assert here.stop() is False
    assert route(engine, route_id)["stopped_at"] is not None
    assert route(engine, route_id)["status"] == "failed"


def test_a_replica_that_cannot_start_is_failed_at_once(engine: Engine, here: HostReplicas) -> None:
    route_id = one(engine, {"command": ["/no/such/command"]})
    here.start()
    failed = route(engine, route_id)
    assert failed["status"] == "failed"
    assert failed["status_reason"] == "the command '/no/such/command' of revision 'v1' was not found on this host"


def test_a_replica_that_exits_at_its_start_is_failed_with_what_it_said(
    engine: Engine, here: HostReplicas, look: Callable[[], bool]
) -> None:
    route_id = one(engine, {**SERVICE, "env": {"BROKEN": "start"}})
    here.start()
    failed = until(engine, route_id, "failed", look)
    assert (failed["status_reason"], failed["log_tail"]) == (
        "its process ended with exit code 1",
        "cannot start: BROKEN=start",
    )


def test_a_replica_that_never_gets_well_is_failed_at_its_start_deadline(
    engine: Engine, here: HostReplicas, runtimes: Runtimes, look: Callable[[], bool]
) -> None:
    check = {**QUICK, "start_deadline_seconds": 1}
    route_id = one(engine, {**SERVICE, "health_check": check, "env": {"BROKEN": "health"}})
    here.start()
    failed = until(engine, route_id, "failed", look)
    assert failed["status_reason"].startswith("not healthy within 1 s of its start: ")
    assert (failed["status_changed_at"] - failed["started_at"]).total_seconds() >= 1
    eventually(lambda: here.stop() is False)
    assert runtimes["process"].find(route_id).running is False  # type: ignore[union-attr]


def test_a_replica_leaves_in_order_out_of_traffic_grace_sigterm_gone(
    engine: Engine, here: HostReplicas, runtimes: Runtimes, client: redis.Redis, look: Callable[[], bool]
) -> None:
    route_id = one(engine, {**SERVICE, "drain_seconds": 0.5})
    here.start()
    until(engine, route_id, "healthy", look)
    ask(engine, "destroy", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    assert (route(engine, route_id)["status"], route(engine, route_id)["traffic_status"]) == ("terminating", "inactive")
    assert here.stop() is True
    assert route(engine, route_id)["stop_requested_at"] is None, "requests in flight come first"
    eventually(lambda: not here.stop(), 15)
    gone = route(engine, route_id)
    assert gone["status"] == "terminated"
    drained, asked, stopped = gone["drain_started_at"], gone["stop_requested_at"], gone["stopped_at"]
    assert drained < asked < stopped
    assert (asked - drained).total_seconds() >= 0.5
    assert log_of(runtimes["process"], route_id, "stopped"), "it ended by itself, not by force"
    assert waiting(client, "lifecycle")[-1][1]["lifecycle_type"] == "destroying"
    run_until_quiet(coordinator_without_redis(engine))
    assert read(engine, "SELECT lifecycle FROM deployments") == [{"lifecycle": "destroyed"}]


def test_a_replica_that_ignores_sigterm_is_killed_after_its_grace(
    engine: Engine, here: HostReplicas, runtimes: Runtimes, look: Callable[[], bool]
) -> None:
    route_id = one(engine, {"command": list(STUBBORN), "drain_seconds": 0, "stop_grace_seconds": 0.3})
    here.start()
    look()
    log_of(runtimes["process"], route_id, "up")
    pid = pid_of(runtimes["process"].find(route_id))
    ask(engine, "destroy", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    eventually(lambda: not here.stop())
    gone = route(engine, route_id)
    assert (gone["stopped_at"] - gone["stop_requested_at"]).total_seconds() >= 0.3
    assert not is_running(pid)
    assert runtimes["process"].log_tail(route_id, 5).splitlines()[:2] == ["up", "no"]


def test_an_engine_that_is_away_fails_nobody_and_holds_up_nobody_else(
    engine: Engine, here: HostReplicas, runtimes: Runtimes, tmp_path: Path
) -> None:
    away = DockerRuntime(HERE, f"unix://{tmp_path}/nobody.sock")
    both = replace(here, runtimes={**runtimes, "docker": away})
    in_docker = {"runtime": "docker", "docker": {"image": "busybox"}, "drain_seconds": 0}
    contained = make_deployment(engine, "◇■", name="box", n=2, status=SCALING, spec=in_docker).routes
    process = one(engine, SERVICE)
    both.start()
    assert [route(engine, one)["started_at"] is None for one in (*contained[:1], process)] == [True, False]
    for name in ("box", "web"):
        ask(engine, "destroy", deployment=name)
    run_until_quiet(coordinator_without_redis(engine))
    eventually(lambda: both.stop() and route(engine, process)["status"] == "terminated", 15)
    assert route(engine, contained[1])["status"] == "terminating", "nothing is known of it"
    both.sweep()


def test_a_route_that_is_drained_before_its_replica_was_started_is_gone_at_once(
    engine: Engine, here: HostReplicas, home: Path
) -> None:
    route_id = one(engine, SERVICE)
    ask(engine, "destroy", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    assert here.start() is False
    assert here.stop() is False
    assert route(engine, route_id)["status"] == "terminated"
    assert processes_of(home) == []


def started_by_hand(engine: Engine, runtime: ProcessRuntime) -> Replica:
    """As by a worker that is killed right after, before it could tell anybody."""
    with transaction(engine) as connection:
        (row,) = routes_to_start(connection, HERE, 10)
    return runtime.start(ReplicaRequest(row.id, row.deployment, row.revision, row.spec))


def test_a_crash_between_the_start_and_its_report_starts_nothing_twice(
    engine: Engine, here: HostReplicas, runtimes: Runtimes, home: Path
) -> None:
    route_id = one(engine, {"command": ["sleep", "60"]})
    replica = started_by_hand(engine, runtimes["process"])
    assert route(engine, route_id)["started_at"] is None
    replace(here, runtimes={"process": ProcessRuntime(home)}).start()
    assert route(engine, route_id)["replica_handle"] == replica.handle
    assert route(engine, route_id)["address"] == replica.address
    eventually(lambda: processes_of(home) == [pid_of(replica)])


def test_a_replica_started_too_late_is_ended_by_the_sweep(
    engine: Engine, here: HostReplicas, runtimes: Runtimes, home: Path
) -> None:
    """The route was drained and found gone while another worker was starting its replica."""
    route_id = one(engine, {"command": ["sleep", "60"]})
    with transaction(engine) as connection:
        (row,) = routes_to_start(connection, HERE, 10)
    ask(engine, "destroy", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    here.stop()
    assert route(engine, route_id)["status"] == "terminated"
    runtimes["process"].start(ReplicaRequest(row.id, row.deployment, row.revision, row.spec))
    eventually(lambda: len(processes_of(home)) == 1)
    here.sweep()
    eventually(lambda: processes_of(home) == [])


def test_the_sweep_ends_what_no_route_expects_forgets_what_has_ended_and_leaves_the_rest(
    engine: Engine, here: HostReplicas, runtimes: Runtimes, home: Path
) -> None:
    expected = one(engine, {"command": ["sleep", "60"]})
    here.start()
    stranger = uuid4()
    runtimes["process"].start(ReplicaRequest(stranger, "web", "v0", RevisionSpec(command=("sleep", "60"))))
    eventually(lambda: len(processes_of(home)) == 2)
    here.sweep()
    eventually(lambda: len(processes_of(home)) == 1)
    assert runtimes["process"].find(expected).running  # type: ignore[union-attr]
    eventually(lambda: here.sweep() is False and runtimes["process"].find(stranger) is None)
    assert processes_of(home, expected) != []


def test_a_running_route_without_a_replica_is_failed(engine: Engine, look: Callable[[], bool]) -> None:
    route_id = one(engine, SERVICE, "■")
    look()
    assert (route(engine, route_id)["status"], route(engine, route_id)["status_reason"]) == (
        "failed",
        "its process is gone",
    )


def test_only_what_is_not_healthy_is_probed_at_every_look(
    engine: Engine, here: HostReplicas, look: Callable[[], bool]
) -> None:
    slow = {"interval_seconds": 3600, "start_deadline_seconds": 30}
    route_id = one(engine, {**SERVICE, "health_check": slow, "env": {"STARTUP_SECONDS": "0.5"}})
    here.start()
    healthy = until(engine, route_id, "healthy", look)
    post(healthy["address"], "/break")
    for _ in range(5):
        look()
    assert route(engine, route_id)["probe_streak"] == 0


def test_a_whole_rollout_of_real_replicas(
    engine: Engine, here: HostReplicas, home: Path, look: Callable[[], bool]
) -> None:
    made = make_deployment(engine, "", n=2, status=SCALING, spec={**SERVICE, "drain_seconds": 0})
    write(engine, "UPDATE deployments SET current_revision_id = %s", made.v1)
    in_transaction(engine, lambda connection: show_sign_of_life(connection, HERE, "127.0.0.1"))
    coordinator = coordinator_without_redis(engine)
    seen: list[str] = []

    def turn() -> None:
        run_until_quiet(coordinator)
        in_transaction(engine, lambda connection: place_routes(connection, 10))
        here.start()
        look()
        here.stop()
        seen.append(drawn(engine, made.id))

    def ready() -> bool:
        turn()
        return str(snapshot(engine, made.id).status) == "ready"

    eventually(ready, 20)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    eventually(ready, 20)
    assert not {"■|◇", "■|■"}.isdisjoint(seen), "old and new side by side"
    assert max(len(one.replace("|", "")) for one in seen) <= 3
    running = read(engine, "SELECT replica_handle FROM routes WHERE revision_id = %s AND status = 'healthy'", made.v2)
    eventually(lambda: here.stop() is False)
    assert sorted(f"pid:{pid}" for pid in processes_of(home)) == sorted(row["replica_handle"] for row in running)
