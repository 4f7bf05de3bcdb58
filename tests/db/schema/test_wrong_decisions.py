"""A wrong decision of ours is refused by Postgres."""

from typing import Any

import pytest
from sqlalchemy import Engine

from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment
from domain.strategies.budget import ids
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.pictures.policies import BLUE_GREEN, COUNTING, PARKING, RECREATE
from tests.support.pictures.wrong_decisions import (
    DecidesWrongly,
    Wrong,
    creates_five_too_many,
    drains_everything,
    promotes_nothing_and_drains_blue,
    promotes_nothing_and_parks_blue,
)
from tests.support.rows.deployments import ROLLING, drawn, make_deployment, read, snapshot
from tests.support.workers.coordinators import coordinator_without_redis


@pytest.mark.decides_wrongly
@pytest.mark.parametrize(
    ("wrong", "policy", "before", "after", "why"),
    [
        (creates_five_too_many, ROLLING, "■■■|", "■■|◇", "9 live replicas are more than the 4 allowed"),
        (drains_everything, ROLLING, "■■■|", "■■|◇", "0 healthy replicas in traffic are fewer than the 2 to keep"),
        (creates_five_too_many, BLUE_GREEN, "■■■|", "■■■|◇◇◇", "9 live replicas are more than the 6 allowed"),
        (drains_everything, BLUE_GREEN, "■■■|□□□", "■■■", "0 healthy replicas in traffic are fewer than the 3 to keep"),
        (promotes_nothing_and_drains_blue, BLUE_GREEN, "■■■|□□□", "■■■", "0 healthy replicas in traffic are fewer"),
        (promotes_nothing_and_parks_blue, PARKING, "■■■|□□□", "□□□|■■■", "0 healthy replicas in traffic are fewer"),
        (creates_five_too_many, RECREATE, "~~~|", "|~~~", "9 live or stopping replicas are more than the 3 allowed"),
        (creates_five_too_many, COUNTING, "■■■|", "■■|◇", "9 live or stopping replicas are more than the 4 allowed"),
    ],
)
def test_a_wrong_decision_is_refused_by_postgres_and_is_an_error_of_that_deployment_alone(
    engine: Engine, wrong: Wrong, policy: Any, before: str, after: str, why: str
) -> None:
    fleet = [
        make_deployment(engine, before, name=f"web-{number}", status=PROVISIONING, policy=policy) for number in range(8)
    ]
    bad = fleet.pop(5)
    was = drawn(engine, bad.id)
    done = coordinator_without_redis(engine).process_chunk(DecidesWrongly(wrong, bad.id))
    assert done.looked_at == 8
    assert drawn(engine, bad.id) == was
    deployment = snapshot(engine, bad.id)
    assert (deployment.status, deployment.phase_attempts) == (PROVISIONING, 1)
    (row,) = read(engine, "SELECT reason FROM deployments WHERE id = %s", bad.id)
    assert row["reason"].partition(": ")[2].startswith(f"web-5: {why}")
    assert {snapshot(engine, other.id).phase_attempts for other in fleet} == {0}
    if policy is not RECREATE:  # which waits, nothing else to do
        assert {drawn(engine, other.id).replace("|", "") for other in fleet} == {after.replace("|", "")}
    (record,) = read(engine, "SELECT result FROM deployment_history WHERE deployment_id = %s", bad.id)
    assert record["result"] == "error"


@pytest.mark.decides_wrongly
def test_the_last_step_of_a_rollout_is_judged_by_the_budget_of_the_rollout(engine: Engine) -> None:
    made = make_deployment(engine, "|■■■", status=PROVISIONING)

    def completes_and_drains_one(deployment: Deployment) -> Decision:
        return Decision.success("done", RouteChanges.drain(ids(deployment.active_routes)[:1]))

    coordinator_without_redis(engine).process_chunk(DecidesWrongly(completes_and_drains_one, made.id))
    assert (snapshot(engine, made.id).status, drawn(engine, made.id)) == (READY, "■■")
