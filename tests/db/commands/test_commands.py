"""What each command does to a deployment, its revisions and its policy."""

from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.pictures.pictures import DESTROYED, DESTROYING, PENDING, PROVISIONING, READY, ROLLING_BACK, SCALING
from tests.support.rows.deployments import ROLLING, SPEC, ask, make_deployment, read, snapshot, write
from tests.support.rows.rows import told


def test_a_deployment_is_created_with_its_policy_and_marked(engine: Engine) -> None:
    done = ask(engine, "create_deployment", deployment="web", desired_replicas=3, policy=ROLLING, actor="ann")
    (row,) = read(engine, "SELECT id, lifecycle, desired_replicas, due_at <= clock_timestamp() AS due FROM deployments")
    assert (row["lifecycle"], row["desired_replicas"], row["due"]) == ("pending", 3, True)
    assert done.result == {"deployment": "web", "deployment_id": str(row["id"]), "version": 1}
    assert (done.repeated, done.statuses) == (False, (PENDING,))
    (policy,) = read(engine, "SELECT strategy, spec, limits FROM policies")
    assert policy["spec"]["max_surge"] == 1
    assert policy["limits"]["timeout_seconds"] == 1800
    assert told(engine) == [("create", "ann", "created with 3 replicas wanted")]


def test_a_revision_is_named_by_its_content_and_adding_it_again_changes_nothing(engine: Engine) -> None:
    ask(engine, "create_deployment", deployment="web")
    first = ask(engine, "add_revision", deployment="web", spec=SPEC).result
    before = read(engine, "SELECT * FROM revisions"), told(engine)
    again = ask(engine, "add_revision", deployment="web", spec=SPEC).result
    assert first["revision"].startswith("web-")
    assert (first["added"], again["added"]) == (True, False)
    assert again["revision_id"] == first["revision_id"]
    assert (read(engine, "SELECT * FROM revisions"), told(engine)) == before


def test_a_revision_takes_values_that_are_not_shown_from_another_and_is_named_by_them(engine: Engine) -> None:
    env = {"A": "1", "B": {"secret": "env:B"}}
    ask(engine, "create_deployment", deployment="web")
    ask(engine, "add_revision", deployment="web", name="v1", spec={**SPEC, "env": env})
    masked = {**SPEC, "command": ["sleep", "61"], "env": {**env, "A": "***"}}
    taken = ask(engine, "add_revision", deployment="web", values_of="v1", spec=masked).result
    written_out = ask(engine, "add_revision", deployment="web", spec={**masked, "env": env}).result
    assert (taken["added"], written_out["added"]) == (True, False)
    assert taken["revision"] == written_out["revision"]
    (row,) = read(engine, "SELECT spec FROM revisions WHERE name = %s", taken["revision"])
    assert row["spec"]["env"] == env


def test_the_room_of_a_replica_outside_a_rollout_is_what_the_policy_says_now(engine: Engine) -> None:
    counting = {"strategy": "rolling_update", "spec": {"count_stopping": True}}
    ask(engine, "create_deployment", deployment="web", policy=counting)
    (row,) = read(engine, "SELECT id, count_stopping FROM deployments")
    assert row["count_stopping"]
    roomless = {"strategy": "rolling_update", "spec": {"max_surge": "0%", "max_unavailable": 1}}
    for policy, counts, may_surge in (
        (ROLLING, False, True),
        ({"strategy": "recreate"}, True, False),
        (None, False, True),
        (roomless, False, False),
    ):
        ask(engine, "set_policy", deployment="web", policy=policy)
        seen = snapshot(engine, row["id"])
        assert (seen.count_stopping, seen.may_surge) == (counts, may_surge)


def test_a_policy_is_replaced_and_removed(engine: Engine) -> None:
    made = make_deployment(engine, policy=None)
    ask(engine, "set_policy", deployment="web", policy=ROLLING)
    ask(engine, "set_policy", deployment="web", policy={**ROLLING, "limits": {"timeout_seconds": 60}})
    (row,) = read(engine, "SELECT limits FROM policies WHERE deployment_id = %s", made.id)
    assert row["limits"]["timeout_seconds"] == 60
    done = ask(engine, "set_policy", deployment="web", policy=None)
    assert done.result == {"deployment": "web", "policy": None, "version": 4}
    assert read(engine, "SELECT * FROM policies") == []


def test_scaling_changes_the_count_marks_and_is_told(engine: Engine) -> None:
    made = make_deployment(engine, status=READY)
    write(
        engine,
        "UPDATE deployments SET due_at = NULL, degraded_reason = 'tired', retry_at = now() WHERE id = %s",
        made.id,
    )
    done = ask(engine, "scale", deployment="web", desired_replicas=5, actor="ann", reason="sale")
    assert done.result == {"deployment": "web", "rollout_id": None, "from": 3, "to": 5, "version": 2, "already": False}
    assert done.statuses == (READY,)
    (row,) = read(engine, "SELECT desired_replicas, due_at, degraded_reason FROM deployments")
    assert (row["desired_replicas"], row["degraded_reason"]) == (5, None)
    assert row["due_at"] is not None
    assert told(engine) == [("scale", "ann", "from 3 to 5 replicas: sale")]


def test_scaling_in_the_middle_of_a_rollout_keeps_the_rollout(engine: Engine) -> None:
    made = make_deployment(engine, "■■|■", status=PROVISIONING)
    done = ask(engine, "scale", deployment="web", desired_replicas=6)
    deployment = snapshot(engine, made.id)
    assert (deployment.status, deployment.desired_replicas, done.statuses) == (PROVISIONING, 6, (PROVISIONING,))
    assert deployment.rollout is not None
    assert deployment.rollout.id == made.rollout_id


@pytest.mark.parametrize("status", [PENDING, SCALING, READY])
def test_a_deployment_is_destroyed_in_whatever_state_it_is(engine: Engine, status: Any) -> None:
    make_deployment(engine, status=status)
    done = ask(engine, "destroy", deployment="web")
    assert done.result == {"deployment": "web", "rollout_id": None, "version": 2, "already": False}
    assert done.statuses == (DESTROYING,)


@pytest.mark.parametrize("status", [PROVISIONING, ROLLING_BACK])
def test_destroying_in_the_middle_of_a_rollout_ends_the_rollout(engine: Engine, status: Any) -> None:
    made = make_deployment(engine, "■■|◇", status=status)
    ask(engine, "destroy", deployment="web")
    deployment = snapshot(engine, made.id)
    assert (deployment.status, deployment.rollout, deployment.deploying_revision_id) == (DESTROYING, None, None)
    (rollout,) = read(engine, "SELECT outcome, ended_at FROM rollouts")
    assert rollout["outcome"] == "destroyed"
    assert rollout["ended_at"] is not None


def test_destroying_again_says_that_it_is_under_way(engine: Engine) -> None:
    make_deployment(engine)
    first = ask(engine, "destroy", deployment="web")
    again = ask(engine, "destroy", deployment="web")
    assert again.result == {**first.result, "already": True}
    assert [phase for phase, _, _ in told(engine)] == ["destroy"]


def test_the_name_of_a_destroyed_deployment_can_be_used_again(engine: Engine) -> None:
    old = make_deployment(engine, "", status=DESTROYED)
    ask(engine, "create_deployment", deployment="web", desired_replicas=1)
    done = ask(engine, "scale", deployment="web", desired_replicas=2)
    assert done.result["from"] == 1
    assert snapshot(engine, old.id).desired_replicas == 3
