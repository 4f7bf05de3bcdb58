"""The probe pass at work on services that hang, break and mend, and on runtimes that give no answer."""

import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import UUID

import redis
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.heartbeats import show_sign_of_life
from db.replicas.host_routes import running_routes
from runtime.docker.docker_runtime import DockerRuntime
from runtime.probing.probes import Prober
from runtime.process.process_runtime import ProcessRuntime
from tasks.replicas.probing import ProbePass, Timetable
from tasks.task_settings import KEY_PREFIX
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, NOBODY, make_deployment, read, write
from tests.support.stack.waiting import eventually
from tests.support.workers.probing import BROKEN, OK, Looks, Service, replica, serving, status, until, versions


def test_nothing_is_written_and_no_row_is_locked_when_nothing_changes(
    engine: Engine, service: Service, make_pass: Looks
) -> None:
    with serving() as sick:
        sick.reply = BROKEN
        replica(engine, service.address)
        unhealthy = replica(engine, sick.address, failure_threshold=1)
        probing = make_pass()
        until(probing, lambda: status(engine, unhealthy) == "unhealthy")
        before, seen = versions(engine), len(sick.connections)
        until(probing, lambda: len(service.connections) >= 5 and len(sick.connections) >= seen + 5)
        assert versions(engine) == before
        service.reply = BROKEN
        until(probing, lambda: versions(engine) != before)


def test_a_replica_that_hangs_delays_nobody(engine: Engine, service: Service, make_pass: Looks) -> None:
    with serving() as silent:
        silent.reply = None
        hanging = [replica(engine, silent.address, timeout_seconds=300) for _ in range(5)]
        other = replica(engine, service.address, failure_threshold=2)
        probing = make_pass()
        until(probing, lambda: len(silent.connections) == 5)
        service.reply = BROKEN
        until(probing, lambda: status(engine, other) == "unhealthy", 3)
        service.reply = OK
        until(probing, lambda: status(engine, other) == "healthy", 3)
        assert len(silent.connections) == 5, "one probe of a route at a time"
        assert {status(engine, route_id) for route_id in hanging} == {"healthy"}


def test_a_replica_that_hangs_for_longer_than_any_pass_becomes_unhealthy(
    engine: Engine, service: Service, make_pass: Looks
) -> None:
    service.reply = None
    route_id = replica(engine, service.address, timeout_seconds=0.5, failure_threshold=3)
    passes = []

    def one_look_of_a_new_pass() -> bool:
        passes.append(make_pass())
        passes[-1].look()
        return status(engine, route_id) == "unhealthy"

    eventually(one_look_of_a_new_pass)
    assert len(passes) > len(service.connections) >= 3, "a probe was answered to a later pass than sent it"
    (row,) = read(engine, "SELECT status_reason FROM routes")
    assert row["status_reason"] == "GET /health: no answer within 0.5 s"


def until_probed_five_times(service: Service, *passes: ProbePass) -> float:
    """How many seconds that took."""
    began = time.monotonic()

    def looked() -> bool:
        for probing in passes:
            probing.look()
        return len(service.connections) >= 5

    eventually(looked)
    return time.monotonic() - began


def test_two_workers_that_look_in_turn_probe_a_replica_once_in_an_interval(
    engine: Engine, service: Service, make_pass: Looks
) -> None:
    replica(engine, service.address, interval_seconds=0.5)
    with closing(Prober()) as another:
        intervals = until_probed_five_times(service, make_pass(), make_pass(prober=another)) / 0.5
    assert len(service.connections) <= intervals + 2


def test_without_redis_a_pass_keeps_to_the_intervals_by_itself(
    engine: Engine, service: Service, make_pass: Looks
) -> None:
    replica(engine, service.address, interval_seconds=0.5)
    with redis.Redis.from_url(NOBODY) as nobody:
        intervals = until_probed_five_times(service, make_pass(client=nobody)) / 0.5
    assert len(service.connections) <= intervals + 3


def test_a_runtime_that_gives_no_answer_fails_nobody_and_holds_up_no_other(
    engine: Engine, service: Service, runtimes: dict[str, ProcessRuntime], make_pass: Looks
) -> None:
    service.reply = BROKEN
    runs = replica(engine, service.address, runtime="docker", failure_threshold=1)
    starts = replica(engine, service.address, "◇", runtime="docker", start_deadline_seconds=0.5)
    gone = make_deployment(engine, "■", n=1, status=SCALING).routes[0]
    probing = make_pass({**runtimes, "docker": DockerRuntime(HERE, "unix:///no/such/docker.sock")})
    until(probing, lambda: status(engine, runs) == "unhealthy")
    until(probing, lambda: status(engine, gone) == "failed")
    began = time.monotonic()
    until(probing, lambda: time.monotonic() - began > 1)
    assert status(engine, starts) == "provisioning", "its start deadline is over, but nothing is known of it"
    service.reply = OK
    until(probing, lambda: status(engine, runs) == status(engine, starts) == "healthy")


def test_what_ended_with_its_host_is_lost_however_late_the_first_look_is(
    engine: Engine, redis_client: redis.Redis, runtimes: dict[str, ProcessRuntime], make_pass: Looks
) -> None:
    def reason(last_look: str) -> str:
        gone = make_deployment(engine, "■", name=f"looked-{last_look}", n=1, status=SCALING).routes[0]
        write(engine, "UPDATE routes SET started_at = now() - interval '90 s' WHERE id = %s", gone)
        (then,) = read(engine, f"SELECT now() - interval '{last_look}' AS at")
        redis_client.set(f"{KEY_PREFIX}probe:last:{HERE}", then["at"].isoformat())
        until(make_pass(dict(runtimes)), lambda: status(engine, gone) == "failed")
        return str(read(engine, "SELECT status_reason FROM routes WHERE id = %s", gone)[0]["status_reason"])

    in_transaction(engine, lambda connection: show_sign_of_life(connection, HERE, "127.0.0.1"))
    write(engine, "UPDATE hosts SET back_at = now() - interval '60 s' WHERE name = %s", HERE)
    assert reason("80 s") == f"its process is gone while its host {HERE} was away"
    assert reason("1 s") == "its process is gone"


def test_a_replica_that_starts_during_a_pass_is_seen_at_its_next_look(
    engine: Engine, service: Service, make_pass: Looks
) -> None:
    probing = make_pass()
    assert not probing.look()
    service.reply = BROKEN
    route_id = replica(engine, service.address, "◇")
    assert probing.look()
    eventually(lambda: service.connections)
    service.reply = OK
    until(probing, lambda: status(engine, route_id) == "healthy")


def test_a_pass_goes_on_while_probes_are_due_every_moment(engine: Engine, service: Service, make_pass: Looks) -> None:
    replica(engine, service.address)
    probing = make_pass()
    until(probing, lambda: not probing.look())
    replica(engine, service.address)
    replica(engine, service.address)
    probing = make_pass()
    assert all(probing.look() for _ in range(20)), "30 a second"


def test_many_that_start_take_turns(engine: Engine) -> None:
    spec = {"command": ["serve"], "health_check": {}}
    make_deployment(engine, "◇" * 120, n=120, status=SCALING, spec=spec)
    write(engine, "UPDATE routes SET started_at = clock_timestamp(), address = '127.0.0.1:1'")
    routes = in_transaction(engine, lambda connection: running_routes(connection, HERE, only_starting=True))
    now, timetable = datetime.now(UTC) + timedelta(seconds=1), Timetable()
    timetable.renew_starting(routes)
    looks = [{target.route_id for target in timetable.due(now, now)} for _ in range(3)]
    assert [len(targets) for targets in looks] == [50, 50, 20]
    assert set().union(*looks) == {route.id for route in routes}


def test_who_starts_for_long_is_asked_seldom_beside_one_that_has_just_begun(engine: Engine) -> None:
    spec = {"command": ["serve"], "health_check": {"start_deadline_seconds": 600}}
    old, young = make_deployment(engine, "◇◇", n=2, status=SCALING, spec=spec).routes
    write(engine, "UPDATE routes SET started_at = clock_timestamp(), address = '127.0.0.1:1'")
    write(engine, "UPDATE routes SET started_at = started_at - interval '1 minute' WHERE id = %s", old)
    timetable = Timetable()
    timetable.renew_starting(
        in_transaction(engine, lambda connection: running_routes(connection, HERE, only_starting=True))
    )
    (began,) = {route.started_at for route in timetable.routes.values() if route.id == young}
    assert began
    asked, now = list[UUID](), began
    while now < began + timedelta(seconds=0.8):
        asked += [target.route_id for target in timetable.due(now, now)]
        now += timetable.pause
    assert (asked.count(young), asked.count(old)) == (40, 4)
