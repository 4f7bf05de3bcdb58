"""An error of one deployment of a chunk is its own, and is tried again ever later."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine

from domain.cycle.transitions import Bounds
from domain.handlers.deploying import DeployingProvisioningHandler
from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment
from domain.text.errors import UnreadableError
from tests.support.pictures.pictures import PROVISIONING, ROLLING_BACK
from tests.support.pictures.wrong_decisions import DecidesWrongly, Wrong
from tests.support.rows.deployments import ask, drawn, mark, read, snapshot, write
from tests.support.workers.chunks import fleet, reason_of
from tests.support.workers.coordinators import coordinator_without_redis, handler_for, run_until_quiet


def test_a_handler_that_raises_for_one_is_an_error_of_that_one_alone(engine: Engine) -> None:
    ids = fleet(engine, 3)

    def has_no_idea(_: Deployment) -> Decision:
        raise RuntimeError("no idea")

    done = coordinator_without_redis(engine).process_chunk(DecidesWrongly(has_no_idea, ids[1]))
    assert done.applied.created == 2
    assert [drawn(engine, deployment_id) for deployment_id in ids] == ["■■|◇", "■■■|", "■■|◇"]
    assert snapshot(engine, ids[1]).phase_attempts == 1
    assert reason_of(engine, ids[1]) == "RuntimeError: no idea"


def creates_for_nobody(deployment: Deployment) -> Decision:
    """A route of a revision that this deployment does not have: Postgres refuses the whole chunk."""
    return Decision.moved("wrong", RouteChanges.create(deployment.id, 1))


def wants_fewer_than_none(_: Deployment) -> Decision:
    return replace(Decision.moved("wrong", RouteChanges()), desired_replicas=-1)


def says_nothing_text_can_hold(_: Deployment) -> Decision:
    return Decision.moved("wrong\0", RouteChanges())


@pytest.mark.parametrize(
    ("wrong", "error", "position"),
    [
        (creates_for_nobody, "routes_revision_id_fkey", 0),
        (wants_fewer_than_none, "deployments_desired_replicas_check", 4),
        (says_nothing_text_can_hold, "CharacterNotInRepertoire", 7),
    ],
)
def test_a_write_that_postgres_refuses_is_an_error_of_that_deployment_alone(
    engine: Engine, wrong: Wrong, error: str, position: int
) -> None:
    ids = fleet(engine, 8)
    bad = ids.pop(position)
    done = coordinator_without_redis(engine).process_chunk(DecidesWrongly(wrong, bad))
    assert (done.looked_at, done.applied.created, done.applied.drained) == (8, 7, 7)
    assert {drawn(engine, deployment_id) for deployment_id in ids} == {"■■|◇"}
    assert drawn(engine, bad) == "■■■|"
    assert {snapshot(engine, deployment_id).phase_attempts for deployment_id in ids} == {0}
    assert snapshot(engine, bad).phase_attempts == 1
    assert reason_of(engine, bad).startswith(f"{error}: ")
    (record,) = read(engine, "SELECT result, error_code FROM deployment_history WHERE deployment_id = %s", bad)
    assert (record["result"], record["error_code"]) == ("error", error)


def test_after_five_such_errors_the_rollout_is_given_up(engine: Engine) -> None:
    (bad,) = fleet(engine, 1)
    coordinator, handler = coordinator_without_redis(engine), DecidesWrongly(wants_fewer_than_none, bad)
    for attempt in range(1, 5):
        mark(engine, bad)
        coordinator.process_chunk(handler)
        deployment = snapshot(engine, bad)
        assert (deployment.status, deployment.phase_attempts) == (PROVISIONING, attempt)
    mark(engine, bad)
    coordinator.process_chunk(handler)
    assert snapshot(engine, bad).status == ROLLING_BACK
    assert reason_of(engine, bad).startswith("5 errors in a row; last: deployments_desired_replicas_check: ")
    records = read(engine, "SELECT result, attempts FROM deployment_history ORDER BY created_at")
    assert [(record["result"], record["attempts"]) for record in records] == [("error", 4), ("give_up", 1)]


def test_errors_are_tried_again_ever_later_and_a_success_begins_the_count_anew(engine: Engine) -> None:
    (bad,) = fleet(engine, 1)
    coordinator = coordinator_without_redis(engine)
    for seconds in (5, 10):
        mark(engine, bad)
        (before,) = read(engine, "SELECT clock_timestamp() AS now")
        coordinator.process_chunk(DecidesWrongly(wants_fewer_than_none, bad))
        (after,) = read(engine, "SELECT due_at, clock_timestamp() AS now FROM deployments")
        decided_at = after["due_at"] - timedelta(seconds=seconds)
        assert before["now"] <= decided_at <= after["now"]
    mark(engine, bad)
    coordinator.process_chunk(handler_for(PROVISIONING))
    assert snapshot(engine, bad).phase_attempts == 0


class BoundsRaise(DeployingProvisioningHandler):
    def bounds(self, deployment: Deployment) -> Bounds:
        if deployment.name == "web-1":
            raise AssertionError
        return super().bounds(deployment)


def test_a_handler_whose_bounds_raise_without_a_word_spares_the_others(engine: Engine) -> None:
    ids = fleet(engine, 3)
    coordinator_without_redis(engine).process_chunk(BoundsRaise())
    assert [drawn(engine, deployment_id) for deployment_id in ids] == ["■■|◇", "■■■|", "■■|◇"]
    assert snapshot(engine, ids[1]).phase_attempts == 1
    assert "AssertionError" in reason_of(engine, ids[1])


def test_a_rollout_that_this_release_cannot_read_spares_the_others_and_can_be_destroyed(engine: Engine) -> None:
    ids = fleet(engine, 3)
    unread = "UPDATE rollouts SET strategy = 'of the next release', spec = '{\"waves\": 7}' WHERE deployment_id = %s"
    write(engine, unread, ids[1])
    done = coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert done.applied.created == 2
    assert [drawn(engine, deployment_id) for deployment_id in ids] == ["■■|◇", "■■■|", "■■|◇"]
    assert "of the next release" in reason_of(engine, ids[1])
    (step,) = read(
        engine, "SELECT inputs FROM rollout_steps JOIN rollouts ON id = rollout_id WHERE deployment_id = %s", ids[1]
    )
    assert step["inputs"]["deployment"]["rollout"]["policy"]["spec"]["stored"] == {"waves": 7}
    ask(engine, "destroy", deployment="web-1")
    run_until_quiet(coordinator_without_redis(engine))
    assert drawn(engine, ids[1]) == ""


def test_a_rollout_with_settings_of_another_release_spares_the_others(engine: Engine) -> None:
    ids = fleet(engine, 3)
    write(engine, "UPDATE rollouts SET spec = spec || '{\"waves\": 7}' WHERE deployment_id = %s", ids[1])
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert [drawn(engine, deployment_id) for deployment_id in ids] == ["■■|◇", "■■■|", "■■|◇"]
    assert "no strategy 'rolling_update' that knows these settings" in reason_of(engine, ids[1])


def test_a_replica_with_a_status_of_another_release_is_an_error_of_its_deployment_alone(engine: Engine) -> None:
    ids = fleet(engine, 4)
    write(engine, "ALTER TABLE routes DROP CONSTRAINT routes_status_check")
    first = "SELECT id FROM routes WHERE deployment_id = %s LIMIT 1"
    write(engine, f"UPDATE routes SET status = 'warming' WHERE id = ({first})", ids[1])
    for _ in range(2):
        mark(engine, *ids)
        done = coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
        assert done.looked_at == 4
    assert [drawn(engine, ids[place]) for place in (0, 2, 3)] == ["■■|◇"] * 3
    assert "this release of Rollway knows no status of a replica 'warming'" in reason_of(engine, ids[1])
    (bad,) = read(
        engine, "SELECT phase_attempts, due_at > clock_timestamp() AS waits FROM deployments WHERE id = %s", ids[1]
    )
    assert bad == {"phase_attempts": 2, "waits": True}
    with pytest.raises(UnreadableError, match="a newer one wrote it"):
        ask(engine, "destroy", deployment="web-1")
