"""The look at metrics, with replicas that really serve them: what it stores, whom it marks, whom it leaves alone."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest
import redis
from prometheus_client import CollectorRegistry, Gauge, start_http_server
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.due_work import open_work
from domain.handlers.check_replica import CheckReplicaHandler
from domain.model.lifecycle_events import ROUTE_CADENCES, RouteLifecycleType
from tasks.messaging.queues import DO_IF_NEEDED_TASK
from tasks.redis.wake import Waker
from tasks.replicas.metric_scrapes import look_at_metrics
from tests.support.pictures.pictures import READY, SCALING
from tests.support.rows.deployments import Made, ask, make_deployment, mark, read, snapshot, write
from tests.support.workers.coordinators import coordinator_without_redis
from tests.support.workers.queues import waiting

WOKEN = [(DO_IF_NEEDED_TASK, {"lifecycle_type": "check_replica", "sub_step": None})]
UP: dict[str, Any] = {"metric": "busy", "comparator": ">", "threshold": 30, "step": 2, "max_replicas": 8}
DOWN: dict[str, Any] = {**UP, "comparator": "<", "threshold": 5, "step": -1}

Serve = Callable[[float], str]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this process time: it is the replicas as well, and a machine may stand still for 2 s."""
    monkeypatch.setattr("runtime.probing.replica_metrics.TIMEOUT_SECONDS", 30.0)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A replica whose /metrics says busy = the number; returns its address."""
    with ExitStack() as stack:

        def start(value: float) -> str:
            registry = CollectorRegistry()
            Gauge("busy", "requests in flight", registry=registry).set(value)
            server, thread = start_http_server(0, "127.0.0.1", registry)
            stack.callback(thread.join, 5)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            return f"127.0.0.1:{server.server_port}"

        yield start


def ruled(
    engine: Engine, *rules: dict[str, Any], at: tuple[str, ...] = (), picture: str = "■■■", **details: Any
) -> Made:
    """A deployment with rules whose replicas listen at these addresses, looked at once."""
    made = make_deployment(engine, picture, **details)
    ask(engine, "set_autoscaling_rules", deployment=details.get("name", "web"), rules=list(rules))
    for route_id, address in zip(made.routes, at, strict=False):
        write(engine, "UPDATE routes SET address = %s WHERE id = %s", address, route_id)
    write(engine, "UPDATE deployments SET due_at = NULL WHERE id = %s", made.id)
    return made


def values(engine: Engine) -> list[tuple[str, float, int]]:
    rows = read(engine, "SELECT series, value, missing FROM metric_values ORDER BY series")
    return [(row["series"], row["value"], row["missing"]) for row in rows]


def marked(engine: Engine) -> list[UUID]:
    return [row["id"] for row in read(engine, "SELECT id FROM deployments WHERE due_at <= clock_timestamp()")]


def test_a_load_that_the_replicas_tell_scales_the_deployment(
    engine: Engine, redis_client: redis.Redis, waker: Waker, serve: Serve
) -> None:
    made = ruled(engine, DOWN, UP, at=(serve(30), serve(40), serve(54.5)))
    assert look_at_metrics(engine, waker) is False
    assert values(engine) == [("avg(busy) at /metrics", 41.5, 0)]
    assert marked(engine) == [made.id]
    assert waiting(redis_client, "lifecycle") == WOKEN
    coordinator_without_redis(engine).process_chunk(CheckReplicaHandler())
    deployment = snapshot(engine, made.id)
    assert (deployment.status, deployment.desired_replicas) == (SCALING, 5)
    (row,) = read(engine, "SELECT reason FROM deployments")
    assert row["reason"] == "busy is 41.5 > 30: from 3 to 5 replicas (at most 8)"


def test_a_quiet_load_is_stored_and_nobody_is_marked_or_woken(
    engine: Engine, redis_client: redis.Redis, waker: Waker, serve: Serve
) -> None:
    made = ruled(engine, DOWN, UP, {**UP, "aggregate": "max", "threshold": 99}, at=(serve(10), serve(20), serve(30)))
    version = snapshot(engine, made.id).version
    look_at_metrics(engine, waker)
    assert values(engine) == [("avg(busy) at /metrics", 20, 0), ("max(busy) at /metrics", 30, 0)]
    assert marked(engine) == []
    assert waiting(redis_client, "lifecycle") == []
    assert snapshot(engine, made.id).version == version


def test_the_next_look_writes_the_newer_value(engine: Engine, waker: Waker, serve: Serve) -> None:
    made = ruled(engine, UP, at=(serve(10), serve(20), serve(30)))
    look_at_metrics(engine, waker)
    (first,) = read(engine, "SELECT at FROM metric_values")
    write(engine, "UPDATE routes SET address = %s WHERE id = %s", serve(70), made.routes[0])
    look_at_metrics(engine, waker)
    assert values(engine) == [("avg(busy) at /metrics", 40, 0)]
    (second,) = read(engine, "SELECT at FROM metric_values")
    assert second["at"] > first["at"]
    assert marked(engine) == [made.id]


def test_a_replica_that_does_not_answer_never_leads_to_fewer(engine: Engine, waker: Waker, serve: Serve) -> None:
    made = ruled(engine, DOWN, at=(serve(1), serve(1)))  # the third listens nowhere
    look_at_metrics(engine, waker)
    assert values(engine) == [("avg(busy) at /metrics", 1, 1)]
    assert marked(engine) == []
    mark(engine, made.id)
    coordinator_without_redis(engine).process_chunk(CheckReplicaHandler())
    (row,) = read(engine, "SELECT reason FROM deployments")
    assert row["reason"].endswith("busy is 1 < 5, but 1 of the replicas did not say, so none is taken away")
    write(engine, "UPDATE routes SET address = %s WHERE id = %s", serve(1), made.routes[2])
    look_at_metrics(engine, waker)
    assert marked(engine) == [made.id]


def test_no_answer_at_all_leaves_the_value_to_grow_old(engine: Engine, waker: Waker, serve: Serve) -> None:
    made = ruled(engine, UP, at=(serve(50),) * 3)
    look_at_metrics(engine, waker)
    write(engine, "UPDATE deployments SET due_at = NULL")
    write(engine, "UPDATE routes SET address = '127.0.0.1:1'")
    write(engine, "UPDATE metric_values SET at = at - interval '31 seconds'")
    before = read(engine, "SELECT * FROM metric_values")
    look_at_metrics(engine, waker)
    assert read(engine, "SELECT * FROM metric_values") == before
    assert marked(engine) == []
    mark(engine, made.id)
    coordinator_without_redis(engine).process_chunk(CheckReplicaHandler())
    (row,) = read(engine, "SELECT reason, desired_replicas FROM deployments")
    assert row["desired_replicas"] == 3
    assert re.search(r"the value of busy is 3\d s old, at most 30 s are allowed$", row["reason"])


def test_only_replicas_that_serve_are_asked(engine: Engine, waker: Waker, serve: Serve) -> None:
    ruled(engine, UP, at=(serve(10), serve(1000), serve(1000), serve(20)), picture="■▲□■")
    look_at_metrics(engine, waker)
    assert values(engine) == [("avg(busy) at /metrics", 15, 0)]


def test_a_cooldown_that_has_passed_is_noticed_without_a_new_push(engine: Engine, waker: Waker) -> None:
    made = ruled(engine, {**UP, "source": "pushed"})
    write(engine, "UPDATE deployments SET last_autoscaled_at = clock_timestamp() - interval '50 seconds'")
    ask(engine, "push_metric", deployment="web", metric="busy", value=50)
    look_at_metrics(engine, waker)
    assert marked(engine) == []
    write(engine, "UPDATE deployments SET last_autoscaled_at = clock_timestamp() - interval '61 seconds'")
    look_at_metrics(engine, waker)
    assert marked(engine) == [made.id]


def test_deployments_that_scale_are_not_asked(engine: Engine, waker: Waker, serve: Serve) -> None:
    ruled(engine, UP, at=(serve(50),) * 3, status=SCALING)
    look_at_metrics(engine, waker)
    assert values(engine) == []
    assert marked(engine) == []


def test_a_fleet_without_rules_is_not_written_to(engine: Engine, redis_client: redis.Redis, waker: Waker) -> None:
    for number in range(3):
        make_deployment(engine, name=f"web-{number}", status=READY)
    write(engine, "UPDATE deployments SET due_at = NULL")
    query = "SELECT id, xmin::text FROM deployments UNION ALL SELECT id, xmin::text FROM routes ORDER BY 1"
    before = read(engine, query)
    assert look_at_metrics(engine, waker) is False
    assert read(engine, query) == before
    assert waiting(redis_client, "lifecycle") == []


def test_two_deployments_are_told_apart(engine: Engine, waker: Waker, serve: Serve) -> None:
    busy = ruled(engine, UP, at=(serve(50),) * 3, name="busy")
    idle = ruled(engine, UP, at=(serve(1),) * 3, name="idle")
    look_at_metrics(engine, waker)
    rows = read(engine, "SELECT deployment_id, value FROM metric_values")
    assert {row["deployment_id"]: row["value"] for row in rows} == {busy.id: 50, idle.id: 1}
    assert marked(engine) == [busy.id]


def test_metrics_are_asked_for_every_five_seconds_where_there_is_a_rule(engine: Engine) -> None:
    assert in_transaction(engine, open_work).has_rules is False
    ruled(engine, UP)
    assert in_transaction(engine, open_work).has_rules is True
    assert ROUTE_CADENCES[RouteLifecycleType.METRICS] == 5
