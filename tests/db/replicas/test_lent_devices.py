"""Sleepers in Postgres: they lend their devices, others get these, and nobody wakes on a device that has an owner."""

import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.devices import owned_on, read_ledger, wake
from db.replicas.host_routes import RouteRow, running_routes
from db.replicas.reports import RouteReport, record_reports
from domain.model.states import RouteStatus, TrafficStatus
from domain.replicas.drain import DrainTimes
from domain.replicas.sleep import SleepStep, next_sleep_step
from tests.db.replicas.test_devices import TWO_OWNERS, deploy, held, live, revision, serving, stop_all, why
from tests.support.rows.acknowledged import ack, publish, release, see, seen_now
from tests.support.rows.databases import engine_on
from tests.support.rows.deployments import ask, read, write
from tests.support.rows.hosts import has
from tests.support.workers.coordinators import assert_nothing_happened_twice, coordinator_without_redis, run_until_quiet

PARK = {"sleep": {"path": "/sleep"}, "wake": {"path": "/wake_up"}}
SLEEPY = {"strategy": "rolling_update", "spec": {"max_unavailable": 1, "sleep_seconds": 3600}}
BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": True, "scale_down_delay_seconds": 3600}}


def report(engine: Engine, route_id: UUID, was: str, step: SleepStep, status: str = "provisioning") -> None:
    (row,) = read(engine, "SELECT deployment_id FROM routes WHERE id = %s", route_id)
    statuses = RouteStatus(was), RouteStatus(status)
    news = RouteReport(route_id, row["deployment_id"], *statuses, reason="seen", sleep=step, address="10.0.0.1:80")
    in_transaction(engine, partial(record_reports, reports=[news]))


def step_of(row: RouteRow) -> SleepStep:
    """The step that its worker takes, where proxies get an hour to let go of it."""
    times = DrainTimes.of(row.spec, timedelta(hours=1))
    return next_sleep_step(row.spec.park, row.parked, times, datetime.now(UTC))


def sleep_all(engine: Engine) -> None:
    """The world: whatever is parked is sent to sleep, and says that it has heard it."""
    parked = "SELECT id FROM routes WHERE parked_until IS NOT NULL AND status = 'healthy'"
    for row in read(engine, parked):
        report(engine, row["id"], "healthy", SleepStep.BEGINS)
        report(engine, row["id"], "provisioning", SleepStep.ANSWERED)


def wake_all(engine: Engine) -> None:
    """The world: whatever is needed again is woken, and says that it is awake."""
    for host in ("a", "b"):
        for row in in_transaction(engine, partial(running_routes, host=host)):
            if step_of(row) is SleepStep.WAKES:
                for step in (SleepStep.WAKES, SleepStep.OVER):
                    report(engine, row.id, "provisioning", step)


def go_on(engine: Engine, times: int = 1) -> None:
    """As `live`, where parked replicas sleep, and sleepers become healthy only when they are woken."""
    for _ in range(times):
        run_until_quiet(coordinator_without_redis(engine))
        stop_all(engine)
        sleep_all(engine)
        wake_all(engine)
        awake = "SELECT id FROM routes WHERE status = 'provisioning' AND asleep_at IS NULL"
        for row in read(engine, awake):
            report(engine, row["id"], "provisioning", SleepStep.NONE, "healthy")
        write(engine, "UPDATE deployments SET due_at = clock_timestamp()")
    run_until_quiet(coordinator_without_redis(engine))


def asleep_and_serving(engine: Engine, gpus: int = 2) -> UUID:
    """v1 sleeps, and has lent gpu0 of host a; v2 serves on gpu1."""
    has(engine, "a", f"gpu={gpus}")
    deploy(engine, "web", 1, BLUE_GREEN, park=PARK)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    go_on(engine, 4)
    assert (serving(engine), held(engine)) == ({"v2": 1}, ["a gpu1"])
    (row,) = read(engine, "SELECT id FROM routes WHERE slept_at IS NOT NULL AND parked_until IS NOT NULL")
    return UUID(str(row["id"]))


def others(engine: Engine, n: int) -> None:
    """Another deployment, whose replicas take what is free."""
    ask(engine, "create_deployment", deployment="other", desired_replicas=n, policy=BLUE_GREEN)
    revision(engine, "other", "v1")
    ask(engine, "activate_revision", deployment="other", revision="v1")
    go_on(engine, 2)


def awake_again(engine: Engine, route_id: UUID) -> bool:
    (row,) = read(
        engine, "SELECT asleep_at IS NULL AND status = 'healthy' AS awake FROM routes WHERE id = %s", route_id
    )
    return bool(row["awake"])


def test_an_undo_wakes_the_sleeper_on_the_device_that_it_had(engine: Engine) -> None:
    sleeper = asleep_and_serving(engine)
    ask(engine, "undo", deployment="web")
    go_on(engine, 4)
    assert in_transaction(engine, partial(owned_on, host="a")) == {("gpu", "0"), ("gpu", "1")}
    assert (serving(engine), awake_again(engine, sleeper)) == ({"v1": 1}, True)
    assert len(read(engine, "SELECT FROM routes")) == 2, "no replica was started for it"
    assert held(engine) == ["a gpu0"], "and v2 sleeps now"
    assert_nothing_happened_twice(engine)


@pytest.mark.parametrize("n", [1, 2])
def test_a_rollout_in_place_and_its_undo_start_each_replica_once(engine: Engine, n: int) -> None:
    has(engine, "a", f"gpu={n}")
    deploy(engine, "web", n, SLEEPY, park=PARK)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    for current, other in (("v2", "v1"), ("v1", "v2"), ("v2", "v1")):
        for _ in range(8):
            go_on(engine)
            assert read(engine, TWO_OWNERS) == []
            assert sum(serving(engine).values()) >= n - 1
        assert (serving(engine), len(held(engine))) == ({current: n}, n)
        ask(engine, "activate_revision", deployment="web", revision=other)
    assert len(read(engine, "SELECT FROM routes")) == 2 * n
    assert_nothing_happened_twice(engine)


def test_when_its_time_is_over_a_sleeper_stops_and_whoever_has_its_device_stays(engine: Engine) -> None:
    has(engine, "a", "gpu=1")
    deploy(engine, "web", 1, SLEEPY, park=PARK)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    go_on(engine, 4)
    write(engine, "UPDATE routes SET parked_until = clock_timestamp() WHERE parked_until IS NOT NULL")
    go_on(engine, 3)
    assert (serving(engine), held(engine)) == ({"v2": 1}, ["a gpu0"])
    assert [row["status"] for row in read(engine, "SELECT status FROM routes ORDER BY id")] == ["terminated", "healthy"]


def test_what_a_sleeper_has_lent_is_given_to_another_deployment_last(engine: Engine) -> None:
    sleeper = asleep_and_serving(engine, 3)
    others(engine, 1)
    assert held(engine) == ["a gpu1", "a gpu2"]
    ask(engine, "scale", deployment="other", desired_replicas=2)
    go_on(engine, 2)
    assert held(engine) == ["a gpu0", "a gpu1", "a gpu2"]
    assert serving(engine, "other") == {"v1": 2}
    assert in_transaction(engine, partial(owned_on, host="a")) == {("gpu", device) for device in "012"}
    ask(engine, "undo", deployment="web")
    go_on(engine, 2)
    assert "3 of 3 in use" in why(engine)
    assert not awake_again(engine, sleeper)
    has(engine, "b", "gpu=1")
    go_on(engine, 4)
    assert serving(engine) == {"v1": 1}, "another one started where a device was free"
    assert not awake_again(engine, sleeper)


def test_a_sleeper_waits_for_its_device_and_takes_it_when_its_holder_has_gone(engine: Engine) -> None:
    sleeper = asleep_and_serving(engine)
    others(engine, 1)
    ask(engine, "undo", deployment="web")
    go_on(engine, 2)
    assert serving(engine) == {"v2": 1}
    ask(engine, "scale", deployment="other", desired_replicas=0)
    go_on(engine, 5)
    assert (serving(engine), awake_again(engine, sleeper)) == ({"v1": 1}, True)


def test_postgres_refuses_a_sleeper_that_wakes_on_a_device_with_an_owner(engine: Engine) -> None:
    sleeper = asleep_and_serving(engine)
    others(engine, 1)
    with pytest.raises(psycopg.errors.CheckViolation, match=r"device gpu 0 of host a: 2 held of 1"):
        write(engine, "UPDATE routes SET slept_at = NULL WHERE id = %s", sleeper)
    in_transaction(engine, partial(wake, woken=[(sleeper, TrafficStatus.ACTIVE)]))
    assert read(engine, "SELECT FROM routes WHERE id = %s AND slept_at IS NOT NULL", sleeper), "put off"
    report(engine, sleeper, "provisioning", SleepStep.WAKES)
    assert read(engine, "SELECT FROM routes WHERE id = %s AND slept_at IS NOT NULL", sleeper), "nobody but a decision"


def test_a_sleeper_that_has_gone_frees_nothing_that_another_one_holds(engine: Engine) -> None:
    sleeper = asleep_and_serving(engine)
    others(engine, 1)
    report(engine, sleeper, "provisioning", SleepStep.NONE, "failed")
    stop_all(engine)
    assert held(engine) == ["a gpu0", "a gpu1"]
    assert not in_transaction(engine, read_ledger).sleepers


def test_it_is_sent_to_sleep_when_its_last_requests_have_had_their_time(engine: Engine) -> None:
    """Their time begins when the last proxy has let go of the replica, each time that it is parked."""
    has(engine, "a", "gpu=2")
    publish(engine)
    see(engine, "edge")
    deploy(engine, "web", 1, BLUE_GREEN, park=PARK, drain_seconds=60)

    def parked_step(revision: str) -> SleepStep:
        rows = in_transaction(engine, partial(running_routes, host="a"))
        (row,) = (row for row in rows if row.revision == revision)
        return step_of(row)

    for current, parked in (("v2", "v1"), ("v1", "v2"), ("v2", "v1")):
        ask(engine, "activate_revision", deployment="web", revision=current)
        live(engine, 3)
        write(engine, "UPDATE routes SET parked_at = parked_at - interval '50 min'")
        assert (release(engine), parked_step(parked)) == (frozenset(), SleepStep.NONE), "a proxy may still use it"
        ack(engine, "edge", seen_now(engine))
        assert (len(release(engine)), parked_step(parked)) == (1, SleepStep.NONE), "its last requests are under way"
        write(engine, "UPDATE routes SET let_go_at = let_go_at - interval '60 s'")
        assert (parked_step(parked), parked_step(current)) == (SleepStep.BEGINS, SleepStep.NONE)
    ask(engine, "activate_revision", deployment="web", revision="v1")
    live(engine, 3)
    write(engine, "UPDATE routes SET parked_at = parked_at - interval '61 min'")
    assert parked_step("v2") is SleepStep.BEGINS, "after the deadline no proxy is waited for"


def test_one_that_is_needed_before_it_has_answered_keeps_its_device(engine: Engine) -> None:
    has(engine, "a", "gpu=2")
    deploy(engine, "web", 1, BLUE_GREEN, park=PARK)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    live(engine, 3)
    (parked,) = read(engine, "SELECT id FROM routes WHERE parked_until IS NOT NULL")
    report(engine, parked["id"], "healthy", SleepStep.BEGINS)
    ask(engine, "undo", deployment="web")
    write(engine, "UPDATE routes SET parked_until = NULL WHERE id = %s", parked["id"])
    report(engine, parked["id"], "provisioning", SleepStep.ANSWERED)
    assert held(engine) == ["a gpu0", "a gpu1"]


def test_a_sleeper_and_a_new_replica_that_want_one_device_never_both_own_it(engine: Engine, database: str) -> None:
    sleeper = asleep_and_serving(engine)
    others(engine, 0)
    engines = [engine_on(database) for _ in range(2)]
    coordinator = coordinator_without_redis(engines[0])
    again = """
        UPDATE routes SET slept_at = clock_timestamp(), parked_until = clock_timestamp() + interval '1 h',
                          traffic_status = 'inactive'
         WHERE id = %s
    """
    woken = set()
    for number in range(40):
        ask(engine, "scale", deployment="other", desired_replicas=1)
        threads = [
            threading.Thread(target=run_until_quiet, args=(coordinator,)),
            threading.Thread(target=wake_alone, args=(engines[1], sleeper)),
        ][:: 1 if number % 2 else -1]
        for thread in threads:
            thread.start()
            thread.join(60 if number < 2 else 0)
        for thread in threads:
            thread.join(60)
        assert read(engine, TWO_OWNERS) == []
        woken |= {row["slept_at"] is None for row in read(engine, "SELECT slept_at FROM routes WHERE id = %s", sleeper)}
        write(engine, again, sleeper)
        ask(engine, "scale", deployment="other", desired_replicas=0)
        go_on(engine, 3)
        assert held(engine) == ["a gpu1"]
    assert woken == {True, False}, "each of them was first at times"
    assert_nothing_happened_twice(engine)
    for each in engines:
        each.dispose()


def wake_alone(engine: Engine, sleeper: UUID) -> None:
    in_transaction(engine, partial(wake, woken=[(sleeper, TrafficStatus.INACTIVE)]))
