"""Replicas that are warmed up before they are healthy, by passes as workers make them."""

from contextlib import closing
from datetime import timedelta
from uuid import UUID

import pytest
import redis
from sqlalchemy import Engine

from runtime.process.process_runtime import ProcessRuntime
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tasks.replicas.warming import Warmer
from tests.support.pictures.pictures import PROVISIONING, SCALING
from tests.support.rows.deployments import HERE, ask, make_deployment, read, write
from tests.support.stack.waiting import eventually
from tests.support.workers.cold_model import Model, warm_up
from tests.support.workers.payloads import ELSEWHERE
from tests.support.workers.probing import Looks, replica, status, until
from tests.support.workers.replicas import until_started
from tests.support.workers.runtimes import HTTP_SERVICE


def reason(engine: Engine, route_id: UUID) -> str:
    return str(read(engine, "SELECT status_reason FROM routes WHERE id = %s", route_id)[0]["status_reason"])


def test_a_replica_is_healthy_after_as_many_fast_answers_in_a_row_as_its_revision_wants(
    engine: Engine, model: Model, make_warm_pass: Looks
) -> None:
    model.cold, model.seconds = 2, 0.5
    route_id = replica(engine, model.address, "◇", warm_up=warm_up())
    until(make_warm_pass(), lambda: status(engine, route_id) == "healthy")
    assert model.requests == [("/v1/completions", "yes", b'{"n": 1}')] * 5
    (row,) = read(engine, "SELECT healthy_at > warmed_at AND warmed_at > warm_up_started_at AS in_order FROM routes")
    assert row["in_order"]


def test_until_then_it_is_provisioning_and_says_how_far_it_is(
    engine: Engine, model: Model, make_warm_pass: Looks
) -> None:
    model.cold, model.seconds = 1000, 0.4
    route_id = replica(engine, model.address, "◇", warm_up=warm_up(), start_deadline_seconds=0.5)
    probing = make_warm_pass()
    until(probing, lambda: reason(engine, route_id).startswith("warming up: 0 of 3 answers under 0.3 s, the last took"))
    until(probing, lambda: len(model.requests) > 4)
    assert status(engine, route_id) == "provisioning", "the deadline of its start has passed, and is over"
    model.cold = 0
    until(probing, lambda: status(engine, route_id) == "healthy")


def test_its_clock_fails_it_with_the_first_line_of_the_last_answer(
    engine: Engine, model: Model, make_warm_pass: Looks
) -> None:
    model.cold, model.refusal = 1000, b"\nloading the model\nfor long"
    route_id = replica(engine, model.address, "◇", warm_up=warm_up(at_most=1.5))
    until(make_warm_pass(), lambda: status(engine, route_id) == "failed")
    words = "0 of 3 answers under 0.3 s, the last was 503: loading the model"
    assert reason(engine, route_id) == f"not warm 1.5 s after it was healthy: {words}"
    (row,) = read(engine, "SELECT failed_starts FROM deployments")
    assert row["failed_starts"] == 1


def test_a_request_that_hangs_is_left_when_the_clock_has_passed(
    engine: Engine, model: Model, make_warm_pass: Looks, warmer: Warmer
) -> None:
    model.cold, model.seconds = 1, 30
    route_id = replica(engine, model.address, "◇", warm_up=warm_up(at_most=1))
    until(make_warm_pass(), lambda: status(engine, route_id) == "failed")
    assert reason(engine, route_id).endswith("0 of 3 answers under 0.3 s")
    eventually(lambda: not warmer._tasks)


def test_what_one_worker_counted_is_nothing_to_the_next(
    engine: Engine, model: Model, make_warm_pass: Looks, redis_client: redis.Redis
) -> None:
    route_id = replica(engine, model.address, "◇", warm_up=warm_up(times=100, under_seconds=5))
    model.cold, model.seconds = 1000, 0.02
    killed = Warmer(engine, redis_client)
    until(make_warm_pass(warmer=killed), lambda: len(model.requests) > 20)
    killed._renewals._held.clear()  # as a process that was killed, it renews nothing
    for task in tuple(killed._tasks.values()):  # each leaves as it ends
        killed._loop.call_soon_threadsafe(task.cancel)
    redis_client.delete(f"rollway:lock:warm-up:{route_id}")
    done = len(model.requests)
    until(make_warm_pass(), lambda: status(engine, route_id) == "healthy", seconds=30)
    assert len(model.requests) - done >= 100
    killed.close()


def test_two_workers_of_a_host_send_one_request_at_a_time(
    engine: Engine, model: Model, make_warm_pass: Looks, redis_client: redis.Redis
) -> None:
    route_id = replica(engine, model.address, "◇", warm_up=warm_up(times=40, under_seconds=5))
    model.cold, model.seconds = 1000, 0.05
    with closing(Warmer(engine, redis_client)) as other:
        passes = make_warm_pass(), make_warm_pass(warmer=other)

        def look() -> bool:
            for probing in passes:
                probing.look()
            return status(engine, route_id) == "healthy"

        eventually(look, 30)
    assert (model.most_at_once, len(model.requests)) == (1, 40)


def test_a_replica_whose_health_fails_meanwhile_is_warm_and_waits_for_a_good_probe(
    engine: Engine, model: Model, make_warm_pass: Looks
) -> None:
    model.cold, model.seconds = 1, 0.5
    route_id, probing = replica(engine, model.address, "◇", warm_up=warm_up(), failure_threshold=1), make_warm_pass()
    until(probing, lambda: len(model.requests) == 1)
    model.is_well = False
    until(probing, lambda: bool(read(engine, "SELECT FROM routes WHERE warmed_at IS NOT NULL")))
    probed = model.probes["/health"]
    until(probing, lambda: model.probes["/health"] > probed + 3)
    assert status(engine, route_id) == "provisioning"
    model.is_well = True
    until(probing, lambda: status(engine, route_id) == "healthy")
    assert len(model.requests) == 4


def test_a_replica_that_sickens_later_is_not_warmed_up_again(
    engine: Engine, model: Model, make_warm_pass: Looks
) -> None:
    route_id, probing = replica(engine, model.address, "◇", warm_up=warm_up(), failure_threshold=1), make_warm_pass()
    until(probing, lambda: status(engine, route_id) == "healthy")
    model.is_well = False
    until(probing, lambda: status(engine, route_id) == "unhealthy")
    model.is_well = True
    until(probing, lambda: status(engine, route_id) == "healthy")
    assert len(model.requests) == 3


def test_a_replica_that_leaves_meanwhile_is_asked_no_more(
    engine: Engine, model: Model, make_warm_pass: Looks, warmer: Warmer
) -> None:
    model.cold, model.seconds = 10_000, 0.05
    route_id = replica(engine, model.address, "◇", warm_up=warm_up(under_seconds=0.01))
    until(make_warm_pass(), lambda: len(model.requests) > 3)
    write(
        engine,
        "UPDATE routes SET status = 'terminating', traffic_status = 'inactive', drain_started_at = now(),"
        " drain_xid = pg_current_xact_id() WHERE id = %s",
        route_id,
    )
    eventually(lambda: not warmer._tasks)


def test_a_process_without_a_health_check_is_warmed_up_after_three_seconds_and_may_end_meanwhile(
    engine: Engine, waker: Waker, runtimes: dict[str, ProcessRuntime], make_warm_pass: Looks
) -> None:
    asked = {"requests": [{"path": "/"}], "at_most_seconds": 30}
    spec = {"command": list(HTTP_SERVICE), "warm_up": asked}
    route_id = make_deployment(engine, "◇", n=1, status=SCALING, spec=spec).routes[0]
    until_started(HostReplicas(engine, runtimes, waker, HERE, timedelta(seconds=5)))
    until(make_warm_pass({**runtimes}), lambda: status(engine, route_id) == "healthy", seconds=20)
    (row,) = read(engine, "SELECT warm_up_started_at > started_at + interval '3 s' AS late, warmed_at FROM routes")
    assert row["late"]
    assert row["warmed_at"]


@pytest.mark.parametrize("first", ["healthy", "unhealthy"])
def test_an_external_replica_is_warmed_up_when_it_is_reported_healthy(
    engine: Engine, model: Model, make_warm_pass: Looks, first: str
) -> None:
    spec = {**ELSEWHERE, "warm_up": warm_up()}
    made = make_deployment(engine, "■■|◇", status=PROVISIONING, spec=spec)
    route_id = made.routes[2]
    write(engine, "UPDATE routes SET host = %s WHERE id = %s", HERE, route_id)
    told = ask(engine, "report_route", route_id=str(route_id), status=first, address=model.address)
    assert (status(engine, route_id), told.result["applied"]) == ("provisioning", first == "healthy")
    ask(engine, "report_route", route_id=str(route_id), status="healthy", address=model.address)
    assert status(engine, route_id) == "provisioning"
    until(make_warm_pass(), lambda: status(engine, route_id) == "healthy")
    assert len(model.requests) == 3
