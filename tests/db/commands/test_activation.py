"""Activating a revision, in every state a deployment can be in, as rows."""

from typing import Any

import pytest
from sqlalchemy import Engine

from domain.model.states import RouteStatus
from tests.support.pictures.pictures import PENDING, PROVISIONING, READY, ROLLING_BACK, SCALING
from tests.support.rows.deployments import (
    ROLLING,
    SPEC,
    ask,
    become,
    drawn,
    make_deployment,
    read,
    snapshot,
    start_all,
    write,
)
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet


def activate(engine: Engine, revision: str, **payload: object) -> dict[str, Any]:
    return ask(engine, "activate_revision", deployment="web", revision=revision, **payload).result


def rollouts(engine: Engine) -> list[dict[str, Any]]:
    return read(engine, "SELECT *, deadline - started_at AS lasts FROM rollouts ORDER BY started_at")


def test_a_policy_that_would_be_refused_today_begins_a_rollout_where_it_is_stored(engine: Engine) -> None:
    never = {**ROLLING, "spec": {"min_ready_seconds": 90}, "limits": {"timeout_seconds": 90}}
    made = make_deployment(engine, policy=never)
    assert activate(engine, "v2")["activation"] == "begun"
    rollout = snapshot(engine, made.id).rollout
    assert rollout is not None
    assert rollout.policy.spec.waits == {"min_ready_seconds": 90}


def test_the_first_revision_starts_a_deployment(engine: Engine) -> None:
    made = make_deployment(engine, "", status=PENDING)
    done = activate(engine, "v2")
    assert (done["activation"], done["rollout_id"], done["version"]) == ("first", None, 2)
    assert snapshot(engine, made.id).current_revision_id == made.v2
    again = activate(engine, "v1")
    assert (again["activation"], snapshot(engine, made.id).current_revision_id) == ("first", made.v1)


@pytest.mark.parametrize("status", [READY, SCALING])
def test_a_policy_begins_a_rollout_with_clocks_and_a_policy_of_its_own(engine: Engine, status: Any) -> None:
    made = make_deployment(engine, status=status, policy={**ROLLING, "limits": {"timeout_seconds": 90}})
    write(engine, "UPDATE deployments SET degraded_reason = 'tired', retry_at = now(), phase_attempts = 3")
    done = activate(engine, "v2", actor="ann", reason="faster")
    ask(engine, "set_policy", deployment="web", policy=ROLLING)
    deployment = snapshot(engine, made.id)
    (rollout,) = rollouts(engine)
    assert (done["activation"], done["rollout_id"], done["version"]) == ("begun", str(rollout["id"]), 2)
    assert deployment.status == PROVISIONING
    assert (deployment.current_revision_id, deployment.deploying_revision_id) == (made.v1, made.v2)
    assert (deployment.phase_attempts, deployment.degraded_reason, deployment.retry_at) == (0, None, None)
    assert deployment.rollout is not None
    assert deployment.phase_started_at == deployment.rollout.started_at == rollout["last_progress_at"]
    assert deployment.rollout.policy.limits.timeout_seconds == 90
    assert rollout["lasts"].total_seconds() == 90
    assert (rollout["actor"], rollout["reason"], rollout["desired_at_start"]) == ("ann", "faster", 3)


def test_asking_again_for_the_same_revision_resumes_the_rollout(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    done = activate(engine, "v2")
    assert (done["activation"], done["rollout_id"]) == ("resumed", str(made.rollout_id))
    assert len(rollouts(engine)) == 1


def test_a_rollout_is_left_for_another_revision_only_with_supersede(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    ask(engine, "add_revision", deployment="web", name="v3", spec=SPEC)
    done = activate(engine, "v3", supersede=True)
    old, new = rollouts(engine)
    assert done["activation"] == "superseded"
    assert (old["id"], old["outcome"]) == (made.rollout_id, "superseded")
    assert (str(new["id"]), new["from_revision_id"], new["outcome"]) == (done["rollout_id"], made.v1, None)
    assert new["started_at"] > old["started_at"]
    assert snapshot(engine, made.id).rollout is not None
    assert drawn(engine, made.id) == "■■◇|"


def test_a_rollout_that_lost_its_policy_lends_its_own_to_the_one_that_supersedes_it(engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    ask(engine, "set_policy", deployment="web", policy=None)
    ask(engine, "add_revision", deployment="web", name="v3", spec=SPEC)
    assert activate(engine, "v3", supersede=True)["activation"] == "superseded"
    old, new = rollouts(engine)
    assert new["spec"] == old["spec"]


def test_on_the_way_back_the_same_revision_can_be_tried_once_more(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=ROLLING_BACK)
    assert activate(engine, "v2", supersede=True)["activation"] == "superseded"
    deployment = snapshot(engine, made.id)
    assert (deployment.status, deployment.deploying_revision_id) == (PROVISIONING, made.v2)


@pytest.mark.parametrize("status", [PROVISIONING, ROLLING_BACK])
def test_superseding_with_the_revision_that_is_current_turns_the_rollout_back(engine: Engine, status: Any) -> None:
    made = make_deployment(engine, "■■|■", status=status)
    done = activate(engine, "v1", supersede=True, actor="ann")
    assert (done["rollout_id"], done["version"]) == (str(made.rollout_id), 2)
    assert snapshot(engine, made.id).status == ROLLING_BACK
    coordinator = coordinator_without_redis(engine)
    run_until_quiet(coordinator)
    start_all(engine)
    run_until_quiet(coordinator)
    assert (snapshot(engine, made.id).status, drawn(engine, made.id)) == (READY, "■■■")
    (rollout,) = rollouts(engine)
    assert rollout["outcome"] == "rolled_back"


def test_without_a_policy_the_pointer_moves_and_the_replicas_follow(engine: Engine) -> None:
    made = make_deployment(engine, policy=None)
    done = activate(engine, "v2")
    assert (done["activation"], done["rollout_id"]) == ("moved", None)
    assert drawn(engine, made.id) == "■■■|"
    coordinator, seen = coordinator_without_redis(engine), set()
    while run_until_quiet(coordinator):
        seen.add(drawn(engine, made.id))
        start_all(engine)
    assert (snapshot(engine, made.id).status, drawn(engine, made.id)) == (READY, "■■■")
    assert seen == {"■■■|◇", "■■|■◇", "■|■■◇", "■■■"}


def test_the_current_revision_again_puts_right_what_is_foreign(engine: Engine) -> None:
    make_deployment(engine, "■|■■")
    assert activate(engine, "v2")["activation"] == "converging"


def test_the_current_revision_again_with_nothing_foreign_changes_nothing(engine: Engine) -> None:
    made = make_deployment(engine)
    before = read(engine, "SELECT * FROM deployments"), read(engine, "SELECT * FROM deployment_history")
    done = activate(engine, "v1")
    assert (done["activation"], done["version"]) == ("already_active", 1)
    assert (read(engine, "SELECT * FROM deployments"), read(engine, "SELECT * FROM deployment_history")) == before
    assert snapshot(engine, made.id).status == READY


def test_a_second_rollout_does_not_inherit_the_clock_or_the_failures_of_the_first(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|◇", status=PROVISIONING)
    become(engine, RouteStatus.FAILED, made.routes[3])
    write(engine, "UPDATE rollouts SET started_at = now() - interval '1 hour', deadline = now() - interval '1 minute'")
    coordinator = coordinator_without_redis(engine)
    run_until_quiet(coordinator)
    assert snapshot(engine, made.id).status == READY
    activate(engine, "v2")
    deployment = snapshot(engine, made.id)
    assert deployment.rollout is not None
    assert (deployment.rollout.failed_routes, deployment.rollout.steps) == (0, 0)
    assert deployment.rollout.deadline > deployment.rollout.started_at >= deployment.phase_started_at
