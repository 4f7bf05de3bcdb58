"""Rollouts in which two features meet, through real Postgres: what is stored decides, and what is decided is stored."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine

from db.commands.autoscaling import watched_deployments
from db.connection.transactions import transaction
from domain.model.states import RouteStatus
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import (
    Made,
    ask,
    become,
    drawn,
    make_deployment,
    mark,
    read,
    snapshot,
    start_all,
    write,
)
from tests.support.workers.coordinators import coordinator_without_redis, handler_for, run_until_quiet

CANARY = {"strategy": "canary", "spec": {"steps": ["5%"]}}
ROLLING_UPDATE = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}


def test_a_canary_in_use_that_is_scaled_to_0_leaves_and_waits(engine: Engine) -> None:
    made = make_deployment(engine, policy=CANARY)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    coordinator = coordinator_without_redis(engine)
    run_until_quiet(coordinator)
    start_all(engine)
    run_until_quiet(coordinator)
    # as proxies leave it: they know the first weight, and the old revision has answered somebody
    write(engine, "UPDATE rollouts SET stage = 1, weight = 500, weight_known_at = clock_timestamp(), in_use = true")
    ask(engine, "scale", deployment="web", desired_replicas=0)
    looks = [coordinator.process_chunk(handler_for(PROVISIONING)).looked_at for _ in range(20)]
    assert sum(looks) < 5
    assert drawn(engine, made.id) == "|"
    (row,) = read(engine, "SELECT due_at, reason FROM deployments")
    assert row["due_at"] is None
    assert row["reason"] == "waiting: the canary has 5 % of the requests; 'rollway promote web' continues"


@pytest.mark.parametrize(
    "spec",
    [
        {"undo_max_surge": "100%", "judge": {"baseline": "fresh"}},
        {"undo_max_surge": 1, "judge": {"baseline": "fresh"}},
        {"undo_max_surge": 0, "max_unavailable": 1},
    ],
)
def test_an_undo_of_a_canary_with_a_surge_of_its_own_goes_through(engine: Engine, spec: dict[str, Any]) -> None:
    policy = {"strategy": "canary", "spec": {"steps": ["5%"], "max_surge": 2, **spec}}
    made = make_deployment(engine, policy=policy)
    ask(engine, "undo", deployment="web", revision="v2", anyway=True)
    coordinator = coordinator_without_redis(engine)
    for _ in range(4):
        run_until_quiet(coordinator)
        start_all(engine)
    run_until_quiet(coordinator)
    (rollout,) = read(engine, "SELECT outcome, strategy, spec ->> 'max_surge' AS surge FROM rollouts")
    assert rollout == {"outcome": "completed", "strategy": "rolling_update", "surge": str(spec["undo_max_surge"])}
    (row,) = read(engine, "SELECT current_revision_id FROM deployments")
    assert row["current_revision_id"] == made.v2


def lost(engine: Engine, made: Made, revision: UUID) -> None:
    """Leave what runs of it as a host leaves it that is lost: no failure of the revision."""
    ids = [r.id for r in snapshot(engine, made.id).active_routes if r.revision_id == revision]
    query = "UPDATE routes SET status = 'failed', traffic_status = 'inactive', stopped_at = now() WHERE id = ANY(%s)"
    write(engine, query, ids)
    mark(engine, made.id)


def test_blue_is_kept_at_its_size_after_a_scale_down_while_green_waits(engine: Engine) -> None:
    made = make_deployment(engine, "■■■■", n=4, policy={"strategy": "blue_green", "spec": {}})
    ask(engine, "activate_revision", deployment="web", revision="v2")
    coordinator = coordinator_without_redis(engine)
    run_until_quiet(coordinator)
    start_all(engine)
    run_until_quiet(coordinator)
    assert drawn(engine, made.id) == "■■■■|□□□□"
    ask(engine, "scale", deployment="web", desired_replicas=2)
    run_until_quiet(coordinator)
    assert drawn(engine, made.id) == "■■|□□"
    lost(engine, made, made.v1)
    run_until_quiet(coordinator)
    start_all(engine)
    serving = [route.revision_id for route in snapshot(engine, made.id).routes if route.is_serving]
    assert serving == [made.v1, made.v1]


@pytest.mark.parametrize("policy", [CANARY, ROLLING_UPDATE], ids=lambda policy: policy["strategy"])
def test_paused_before_its_first_step_a_rollout_to_fewer_replicas_drains_none(
    engine: Engine, policy: dict[str, Any]
) -> None:
    made = make_deployment(engine, "■■■■■■■■", n=8, policy=policy)
    ask(engine, "activate_revision", deployment="web", revision="v2", desired_replicas=2)
    ask(engine, "pause", deployment="web")
    coordinator = coordinator_without_redis(engine)
    run_until_quiet(coordinator)
    assert drawn(engine, made.id) == "■■■■■■■■|"
    become(engine, RouteStatus.UNHEALTHY, made.routes[0])
    write(engine, "UPDATE routes SET status_changed_at = now() - interval '40 s' WHERE status = 'unhealthy'")
    for _ in range(3):
        mark(engine, made.id)
        run_until_quiet(coordinator)
        assert drawn(engine, made.id).count("■") >= 7
        start_all(engine)
    run_until_quiet(coordinator)
    assert drawn(engine, made.id) == "■■■■■■■■|"


def test_in_the_minute_of_short_lives_what_is_lost_is_replaced_and_rules_are_asked(engine: Engine) -> None:
    made = make_deployment(engine)
    coordinator = coordinator_without_redis(engine)
    rule = {"metric": "requests_in_flight", "source": "pushed", "comparator": ">", "threshold": 30, "step": 1}
    ask(engine, "set_autoscaling_rules", deployment="web", rules=[{**rule, "max_replicas": 8}])
    for _ in range(3):
        youngest = max(snapshot(engine, made.id).active_routes, key=lambda route: (route.created_at, route.id))
        become(engine, RouteStatus.FAILED, youngest.id)
        write(engine, "UPDATE deployments SET last_failed_at = last_failed_at - interval '60 s'")
        mark(engine, made.id)
        run_until_quiet(coordinator)
        start_all(engine)
        run_until_quiet(coordinator)
    (row,) = read(engine, "SELECT lifecycle, degraded_reason FROM deployments")
    assert row["lifecycle"] == "ready"
    assert row["degraded_reason"].startswith("replicas failed 2 times in a row soon after they had come up")
    with transaction(engine) as connection:
        assert [watched.id for watched in watched_deployments(connection)[0]] == [made.id]
    lost(engine, made, made.v1)
    run_until_quiet(coordinator)
    assert len(snapshot(engine, made.id).active_routes) == 3


def test_the_retry_of_an_undo_is_an_undo_and_so_is_one_to_what_is_under_way(engine: Engine) -> None:
    spec = {"steps": ["5%"], "undo_max_surge": "100%", "min_ready_seconds": 60}
    made = make_deployment(engine, policy={"strategy": "canary", "spec": spec})
    ask(engine, "set_freeze", freeze="weekend", duration_seconds=3600)
    ask(engine, "activate_revision", deployment="web", revision="v2", through_freeze=True, reason="it is safe")
    ask(engine, "undo", deployment="web", revision="v2", anyway=True)
    ask(engine, "abort", deployment="web")
    ask(engine, "retry", deployment="web")
    rollouts = read(engine, "SELECT outcome, strategy, is_undo FROM rollouts ORDER BY started_at")
    assert rollouts == [
        {"outcome": "superseded", "strategy": "canary", "is_undo": False},
        {"outcome": "superseded", "strategy": "rolling_update", "is_undo": True},
        {"outcome": None, "strategy": "rolling_update", "is_undo": True},
    ]
    coordinator = coordinator_without_redis(engine)
    run_until_quiet(coordinator)
    assert drawn(engine, made.id) == "■■■|◇◇◇"
