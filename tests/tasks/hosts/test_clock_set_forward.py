"""The clock of Postgres is set forward by an hour, as by a failover: no good rollout goes back for that, or says so."""

from typing import Any

import pytest
from sqlalchemy import Engine
from structlog.testing import capture_logs

from tasks.hosts.heartbeat import Heartbeat
from tests.support.faults.shifted_clock import ShiftedClock
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import ROLLING, Made, make_deployment, mark, read, write
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.tasks.hosts.test_clock_set_back import AN_HOUR, clock, engine, server, signs

__all__ = ["clock", "engine", "server", "signs"]

POLICY = {**ROLLING, "limits": {"timeout_seconds": 120, "progress_timeout_seconds": 60}}


def set_forward(clock: ShiftedClock, *givers: Heartbeat) -> None:
    clock.set(2 * AN_HOUR)
    with capture_logs() as told:
        for giver in givers:
            giver.show()
    assert [line["seconds"] for line in told if "seconds" in line] == [pytest.approx(AN_HOUR, abs=2)] * len(givers)


def begun(engine: Engine) -> Made:
    """A rollout under way, one of whose replicas starts, and one that leaves."""
    made = make_deployment(engine, "■■~|◇", status=PROVISIONING, policy=POLICY, status_for=5)
    write(engine, "UPDATE rollouts SET deadline = clock_timestamp() + interval '100 s'")
    return made


def rollout(engine: Engine) -> dict[str, Any]:
    (row,) = read(engine, "SELECT * FROM rollouts")
    return row


def test_a_good_rollout_goes_on_and_each_limit_comes_as_much_later(
    engine: Engine, clock: ShiftedClock, signs: Heartbeat
) -> None:
    begun(engine)
    others = [Heartbeat(engine, f"host-{number}", "127.0.0.1") for number in range(2)]
    for giver in others:
        giver.show()
    before, routes = rollout(engine), read(engine, "SELECT * FROM routes ORDER BY id")
    set_forward(clock, signs, *others)
    after = rollout(engine)
    for time in ("started_at", "last_progress_at", "deadline"):
        assert (after[time] - before[time]).total_seconds() == pytest.approx(AN_HOUR, abs=2), (
            f"{time}: once, not thrice"
        )
    for was, row in zip(routes, read(engine, "SELECT * FROM routes ORDER BY id"), strict=True):
        for time in ("started_at", "status_changed_at", "drain_started_at"):
            moved = None if was[time] is None else (row[time] - was[time]).total_seconds()
            assert moved == (None if was[time] is None else pytest.approx(AN_HOUR, abs=2)), (was["status"], time)
    mark(engine)
    run_until_quiet(coordinator_without_redis(engine))
    assert (rollout(engine)["outcome"], rollout(engine)["back_reason"]) == (None, None)


def test_one_that_was_turned_back_before_anybody_saw_it_says_so(
    engine: Engine, clock: ShiftedClock, signs: Heartbeat
) -> None:
    made = begun(engine)
    signs.show()
    clock.set(2 * AN_HOUR)
    mark(engine, made.id)
    run_until_quiet(coordinator_without_redis(engine))
    assert "has passed" in rollout(engine)["back_reason"]
    set_forward(clock, signs)
    said = "; meanwhile the clock of PostgreSQL was set forward by 3600 s"
    assert rollout(engine)["back_reason"].endswith(said)


def test_what_is_parked_for_the_way_back_stays_as_long_as_was_said(
    engine: Engine, clock: ShiftedClock, signs: Heartbeat
) -> None:
    made = make_deployment(engine, "■|■■■", status=READY)
    parked = "traffic_status = 'inactive', parked_until = clock_timestamp() + interval '600 s'"
    write(engine, f"UPDATE routes SET {parked} WHERE revision_id = %s", made.v1)
    signs.show()
    set_forward(clock, signs)
    mark(engine, made.id)
    run_until_quiet(coordinator_without_redis(engine))
    rows = read(
        engine, "SELECT status, parked_until > clock_timestamp() AS stays FROM routes WHERE revision_id = %s", made.v1
    )
    assert [(row["status"], row["stays"]) for row in rows] == [("healthy", True)]


def test_what_was_begun_since_is_right(engine: Engine, clock: ShiftedClock, signs: Heartbeat) -> None:
    signs.show()
    clock.set(2 * AN_HOUR)
    begun(engine)
    write(engine, "UPDATE rollouts SET started_at = clock_timestamp(), last_progress_at = clock_timestamp()")
    before = rollout(engine)
    set_forward(clock, signs)
    after = rollout(engine)
    assert {time: after[time] for time in ("started_at", "last_progress_at", "deadline")} == {
        time: before[time] for time in ("started_at", "last_progress_at", "deadline")
    }


def test_a_clock_that_goes_as_it_should_moves_nothing(engine: Engine, signs: Heartbeat) -> None:
    begun(engine)
    before = rollout(engine)
    for _ in range(3):
        signs.show()
    assert rollout(engine) == before
