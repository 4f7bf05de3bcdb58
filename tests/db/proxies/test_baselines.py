"""What proxies are told of as the fresh baseline of a canary: replicas that are no older than its rollout."""

from uuid import UUID

import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from db.clock_reset import count_from_now
from db.connection.transactions import in_transaction
from db.proxies.measurements import due_rollouts
from db.proxies.traffic_reader import read_traffic
from domain.traffic.canary_shares import has_fresh_baseline
from domain.traffic.snapshot import Canary, DeploymentInTraffic
from tests.support.pictures.pictures import PROVISIONING
from tests.support.pictures.policies import BASELINE, CANARY
from tests.support.rows.deployments import Made, make_deployment, read, write

FRESH = "UPDATE routes SET created_at = clock_timestamp() WHERE id = %s"
ENDED = "UPDATE rollouts SET outcome = 'completed', ended_at = clock_timestamp() - %s * interval '1 second'"


@pytest.fixture
def web(engine: Engine) -> Made:
    """Of its old replicas the second was created just now."""
    made = make_deployment(engine, "■■|■", n=1, status=PROVISIONING, policy=BASELINE)
    write(engine, "UPDATE rollouts SET weight = 500, stage = 1")
    write(engine, "UPDATE routes SET address = '10.0.0.1:8000'")
    write(engine, FRESH, made.routes[1])
    return made


def told(engine: Engine) -> DeploymentInTraffic:
    (deployment,) = in_transaction(engine, read_traffic).deployments
    return deployment


def baseline(engine: Engine) -> frozenset[UUID] | None:
    canary = told(engine).canary
    return canary.baseline if canary else None


def test_it_is_what_is_no_older_than_the_rollout_as_long_as_that_goes_forward(engine: Engine, web: Made) -> None:
    assert baseline(engine) == frozenset({web.routes[1]})
    write(engine, "UPDATE deployments SET sub_step = 'rolling_back'")
    assert baseline(engine) == frozenset()
    write(engine, "UPDATE deployments SET sub_step = 'provisioning'")
    write(engine, "UPDATE rollouts SET spec = spec - 'judge'")
    assert (baseline(engine), told(engine).canary is not None) == (None, True)


def test_its_cluster_stays_for_a_minute_and_as_long_as_old_replicas_still_answer(engine: Engine, web: Made) -> None:
    end = """
        UPDATE deployments SET lifecycle = 'ready', sub_step = NULL, deploying_revision_id = NULL, rollout_id = NULL
    """
    write(engine, end)
    write(engine, ENDED, 50)
    assert baseline(engine) == frozenset()
    write(engine, ENDED, 70)
    assert (baseline(engine), told(engine).canary is not None) == (None, False)
    leaving = (
        "UPDATE routes SET status = 'terminating', traffic_status = 'inactive', drain_started_at = now() WHERE id = %s"
    )
    write(engine, leaving, web.routes[1])
    assert (baseline(engine), told(engine).canary is not None) == (frozenset(), True)


@pytest.mark.usefixtures("web")
def test_it_stays_too_when_a_canary_without_one_takes_its_place(engine: Engine) -> None:
    copied = """
        INSERT INTO rollouts (deployment_id, from_revision_id, to_revision_id, strategy, spec, limits, desired_at_start,
                              ceiling, floor, actor, reason, weight)
        SELECT deployment_id, from_revision_id, to_revision_id, strategy, %s, limits, desired_at_start, ceiling, floor,
               actor, reason, 0 FROM rollouts
    """
    write(engine, ENDED, 1)
    write(engine, copied, Jsonb(CANARY["spec"]))
    assert told(engine).canary == Canary(0, baseline=frozenset(), floor=1)


@pytest.mark.usefixtures("web")
def test_proxies_are_asked_for_it_where_there_is_one(engine: Engine) -> None:
    assert [
        has_fresh_baseline(rollout.policy["spec"]) for rollout in in_transaction(engine, lambda it: due_rollouts(it, 0))
    ] == [True]
    write(engine, "UPDATE rollouts SET spec = spec - 'judge'")
    assert [
        has_fresh_baseline(rollout.policy["spec"]) for rollout in in_transaction(engine, lambda it: due_rollouts(it, 0))
    ] == [False]


def test_a_rollout_that_began_in_time_to_come_began_now(engine: Engine, web: Made) -> None:
    write(engine, "UPDATE rollouts SET started_at = clock_timestamp() + interval '1 hour'")
    assert baseline(engine) == frozenset()
    assert in_transaction(engine, count_from_now) == {web.id}
    assert read(engine, "SELECT started_at <= clock_timestamp() AS began FROM rollouts") == [{"began": True}]
