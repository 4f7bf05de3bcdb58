"""What a plan says is what Postgres has afterwards: step by step, of rollouts in which nothing goes wrong."""

import random
from typing import Any

import pytest
from psycopg import Connection
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.views.deployment_views import deployment_named
from db.views.planning_views import Foreseeable, foreseeable
from domain.model.states import RouteStatus
from domain.planning.plan_input import HostsAhead, Subject, after_activation
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import Plan, plan
from domain.steering.activation import ActivationRequest
from domain.strategies.builtin import parse_policy
from tests.support.rows.deployments import Made, ask, become, make_deployment, read, start_all, write
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet
from tests.support.worlds.planned import hold_against_their_plans


def known(engine: Engine) -> Foreseeable:
    def look(connection: Connection[Any]) -> Foreseeable:
        return foreseeable(connection, deployment_named(connection, "web"))

    return in_transaction(engine, look)


def planned(engine: Engine, made: Made, policy: dict[str, Any]) -> Plan:
    found = known(engine)
    request = ActivationRequest(made.v2, "v2", None, parse_policy(policy))
    subject = Subject(after_activation(found.deployment, request, found.now, HostsAhead()))
    return plan(subject, found.now, found.learned, random.Random(1).random)


def rolled_out(engine: Engine, made: Made) -> list[tuple[int, int, int, int]]:
    """Activate v2, let everything start and stop that should; what each stored step did, as plans count it."""
    coordinator = coordinator_without_redis(engine)
    ask(engine, "activate_revision", deployment="web", revision="v2", actor="ann")
    for _ in range(50):
        run_until_quiet(coordinator)
        (row,) = read(engine, "SELECT rollout_id, reason FROM deployments WHERE id = %s", made.id)
        if row["rollout_id"] is None:
            break
        if "rollway promote" in row["reason"]:
            ask(engine, "promote", deployment="web", actor="ann")
        start_all(engine)
        write(
            engine,
            "UPDATE routes SET status = 'terminated', stopped_at = clock_timestamp() WHERE status = 'terminating'",
        )
        write(engine, "UPDATE deployments SET due_at = clock_timestamp()")
    steps = read(engine, "SELECT decision->'changes' AS changes FROM rollout_steps ORDER BY step_no")
    return [
        (
            sum(spec["count"] for spec in step["changes"]["rollout_specs"]),
            len(step["changes"]["drain_route_ids"]),
            len(step["changes"]["promote_route_ids"]),
            len(step["changes"]["park_route_ids"]),
        )
        for step in steps
    ]


@pytest.mark.parametrize(
    ("n", "policy"),
    [
        (3, {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1}}),
        (5, {"strategy": "rolling_update", "spec": {"max_surge": "40%", "max_unavailable": 0}}),
        (3, {"strategy": "rolling_update", "spec": {"max_unavailable": 3}}),
        (3, {"strategy": "blue_green", "spec": {"scale_down_delay_seconds": 600}}),
        (2, {"strategy": "blue_green", "spec": {"auto_promote": True}}),
        (3, {"strategy": "recreate"}),
    ],
)
def test_a_rollout_in_which_nothing_goes_wrong_has_the_steps_of_its_plan(
    engine: Engine, n: int, policy: dict[str, Any]
) -> None:
    made = make_deployment(engine, "■" * n, n=n, policy=policy)
    foreseen = planned(engine, made, policy)
    assert foreseen.is_certain
    assert foreseen.waves
    assert rolled_out(engine, made) == [wave.moves for wave in foreseen.waves]
    assert in_transaction(engine, hold_against_their_plans) == 1


def test_what_starts_and_stops_took_is_learned(engine: Engine) -> None:
    made = make_deployment(engine, "■■■")
    assert known(engine).learned == Timings(revisions=1)
    rolled_out(engine, made)
    learned = known(engine).learned
    assert len(learned.starts) == 3
    assert len(learned.stops) == 3
    assert len(learned.wakes) == 1
    assert learned.failed_starts == 0
    assert all(0 < seconds < 60 for seconds in (*learned.starts, *learned.stops, *learned.wakes))


def test_a_start_that_failed_is_learned_and_health_that_comes_back_is_no_second_start(engine: Engine) -> None:
    made = make_deployment(engine, "◇◇", n=2)
    become(engine, RouteStatus.FAILED, made.routes[0])
    start_all(engine)
    (before,) = read(engine, "SELECT healthy_at FROM routes WHERE id = %s", made.routes[1])
    become(engine, RouteStatus.UNHEALTHY, made.routes[1])
    become(engine, RouteStatus.HEALTHY, made.routes[1])
    (after,) = read(engine, "SELECT healthy_at FROM routes WHERE id = %s", made.routes[1])
    assert before == after
    assert known(engine).learned.failed_starts == 1
    assert known(engine).learned.failure_rate == 0.5
