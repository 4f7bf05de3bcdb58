"""The seven commands: what each does, what each refuses, and that a refusal leaves nothing behind."""

import json
import threading
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Engine

from db.cycle.claim import claim_these
from db.engine import transaction
from db.schema.tables import metadata
from domain.errors import (
    DeploymentAlreadyInProgressError,
    DeploymentExistsError,
    DeploymentNotFoundError,
    InvalidInputError,
    RequestIdReusedError,
    RevisionExistsError,
    RevisionNotFoundError,
    RollwayError,
    RouteNotFoundError,
    StaleVersionError,
    UnknownCommandError,
    WrongStateError,
)
from tests.support.deployments import HERE, ROLLING, SPEC, ask, drawn, engine_on, make_deployment, read, snapshot, write
from tests.support.pictures import DESTROYED, DESTROYING, PENDING, PROVISIONING, READY, ROLLING_BACK, SCALING
from tests.support.waiting import eventually

OTHER_SPEC = {"command": ["sleep", "61"]}


def everything(engine: Engine) -> dict[str, list[str]]:
    """Every row of every table."""
    return {name: sorted(str(row) for row in read(engine, f"SELECT * FROM {name}")) for name in metadata.tables}


def history(engine: Engine) -> list[tuple[str, str, str]]:
    rows = read(engine, "SELECT phase, actor, message FROM deployment_history ORDER BY created_at")
    return [(row["phase"], row["actor"], row["message"]) for row in rows]


def test_a_deployment_is_created_with_its_policy_and_marked(engine: Engine) -> None:
    done = ask(engine, "create_deployment", deployment="web", desired_replicas=3, policy=ROLLING, actor="ann")
    (row,) = read(engine, "SELECT id, lifecycle, desired_replicas, due_at <= clock_timestamp() AS due FROM deployments")
    assert (row["lifecycle"], row["desired_replicas"], row["due"]) == ("pending", 3, True)
    assert done.result == {"deployment": "web", "deployment_id": str(row["id"]), "version": 1}
    assert (done.repeated, done.status) == (False, PENDING)
    (policy,) = read(engine, "SELECT strategy, spec, limits FROM policies")
    assert policy["spec"]["max_surge"] == 1
    assert policy["limits"]["timeout_seconds"] == 1800
    assert history(engine) == [("create", "ann", "created with 3 replicas wanted")]


def test_a_revision_is_named_by_its_content_and_adding_it_again_changes_nothing(engine: Engine) -> None:
    ask(engine, "create_deployment", deployment="web")
    first = ask(engine, "add_revision", deployment="web", spec=SPEC).result
    before = read(engine, "SELECT * FROM revisions"), history(engine)
    again = ask(engine, "add_revision", deployment="web", spec=SPEC).result
    assert first["revision"].startswith("web-")
    assert (first["added"], again["added"]) == (True, False)
    assert again["revision_id"] == first["revision_id"]
    assert (read(engine, "SELECT * FROM revisions"), history(engine)) == before


def test_whether_stopping_replicas_count_outside_a_rollout_is_what_the_policy_says_now(engine: Engine) -> None:
    counting = {"strategy": "rolling_update", "spec": {"count_stopping": True}}
    ask(engine, "create_deployment", deployment="web", policy=counting)
    (row,) = read(engine, "SELECT id, count_stopping FROM deployments")
    assert row["count_stopping"]
    for policy, counts in ((ROLLING, False), ({"strategy": "recreate"}, True), (None, False)):
        ask(engine, "set_policy", deployment="web", policy=policy)
        assert snapshot(engine, row["id"]).count_stopping == counts


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
    assert done.status == READY
    (row,) = read(engine, "SELECT desired_replicas, due_at, degraded_reason FROM deployments")
    assert (row["desired_replicas"], row["degraded_reason"]) == (5, None)
    assert row["due_at"] is not None
    assert history(engine) == [("scale", "ann", "from 3 to 5 replicas: sale")]


def test_scaling_in_the_middle_of_a_rollout_keeps_the_rollout(engine: Engine) -> None:
    made = make_deployment(engine, "■■|■", status=PROVISIONING)
    done = ask(engine, "scale", deployment="web", desired_replicas=6)
    one = snapshot(engine, made.id)
    assert (one.status, one.desired_replicas, done.status) == (PROVISIONING, 6, PROVISIONING)
    assert one.rollout is not None
    assert one.rollout.id == made.rollout_id


@pytest.mark.parametrize("status", [PENDING, SCALING, READY])
def test_a_deployment_is_destroyed_in_whatever_state_it_is(engine: Engine, status: Any) -> None:
    make_deployment(engine, status=status)
    done = ask(engine, "destroy", deployment="web")
    assert done.result == {"deployment": "web", "rollout_id": None, "version": 2, "already": False}
    assert done.status == DESTROYING


@pytest.mark.parametrize("status", [PROVISIONING, ROLLING_BACK])
def test_destroying_in_the_middle_of_a_rollout_ends_the_rollout(engine: Engine, status: Any) -> None:
    made = make_deployment(engine, "■■|◇", status=status)
    ask(engine, "destroy", deployment="web")
    one = snapshot(engine, made.id)
    assert (one.status, one.rollout, one.deploying_revision_id) == (DESTROYING, None, None)
    (rollout,) = read(engine, "SELECT outcome, ended_at FROM rollouts")
    assert rollout["outcome"] == "destroyed"
    assert rollout["ended_at"] is not None


def test_destroying_again_says_that_it_is_under_way(engine: Engine) -> None:
    make_deployment(engine)
    first = ask(engine, "destroy", deployment="web")
    again = ask(engine, "destroy", deployment="web")
    assert again.result == {**first.result, "already": True}
    assert [phase for phase, _, _ in history(engine)] == ["destroy"]


def test_the_name_of_a_destroyed_deployment_can_be_used_again(engine: Engine) -> None:
    old = make_deployment(engine, "", status=DESTROYED)
    ask(engine, "create_deployment", deployment="web", desired_replicas=1)
    done = ask(engine, "scale", deployment="web", desired_replicas=2)
    assert done.result["from"] == 1
    assert snapshot(engine, old.id).desired_replicas == 3


def test_a_replica_that_another_system_runs_is_reported_from_start_to_end(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    route = str(made.routes[2])
    up = ask(engine, "report_route", route_id=route, status="healthy", address="10.0.0.7:80", actor="gpu-fleet")
    assert up.result == {"deployment": "web", "route": route, "status": "healthy", "applied": True}
    assert (drawn(engine, made.id), up.status) == ("■■|■", PROVISIONING)
    ask(engine, "report_route", route_id=route, status="unhealthy")
    assert drawn(engine, made.id) == "■■|▲"
    ask(engine, "report_route", route_id=route, status="failed", actor="gpu-fleet")
    (row,) = read(engine, "SELECT * FROM routes WHERE id = %s", made.routes[2])
    assert (row["status"], row["traffic_status"], row["address"]) == ("failed", "inactive", "10.0.0.7:80")
    assert row["status_reason"] == "reported failed by gpu-fleet"
    (rollout,) = read(engine, "SELECT failed_routes FROM rollouts")
    assert rollout["failed_routes"] == 1


def test_a_replica_that_another_system_has_stopped_is_gone_and_failed_when_nobody_asked_for_it(engine: Engine) -> None:
    made = make_deployment(engine, "■~✗", n=2)
    for route in made.routes:
        assert ask(engine, "report_route", route_id=str(route), status="stopped").result["applied"] is True
    rows = read(engine, "SELECT status, stopped_at IS NOT NULL AS gone FROM routes ORDER BY id")
    assert [(row["status"], row["gone"]) for row in rows] == [("failed", True), ("terminated", True), ("failed", True)]


def test_a_host_that_is_up_is_not_forgotten_and_one_that_is_down_is(engine: Engine) -> None:
    make_deployment(engine, "■", n=1)
    write(engine, "INSERT INTO hosts (name, address) VALUES (%s, '127.0.0.1')", HERE)
    with pytest.raises(WrongStateError, match="host here is up"):
        ask(engine, "forget_host", host=HERE)
    write(engine, "UPDATE hosts SET down_since = now()")
    done = ask(engine, "forget_host", host=HERE)
    assert (done.result, done.status) == ({"host": HERE, "deployments": 1}, None)
    (row,) = read(engine, "SELECT status, stopped_at IS NOT NULL AS gone FROM routes")
    assert (row["status"], row["gone"]) == ("failed", True)


@pytest.mark.parametrize("reported", ["healthy", "unhealthy", "failed"])
@pytest.mark.parametrize("gone", ["~", "✗"])
def test_a_late_report_does_not_bring_a_replica_back_that_is_on_its_way_out(
    engine: Engine, gone: str, reported: str
) -> None:
    made = make_deployment(engine, f"■■{gone}")
    before = everything(engine)
    done = ask(engine, "report_route", route_id=str(made.routes[2]), status=reported, address="10.0.0.7:80")
    assert done.result["applied"] is False
    assert {**everything(engine), "commands": []} == before


def test_a_report_waits_for_whoever_changes_the_route_at_the_moment(engine: Engine) -> None:
    made = make_deployment(engine, "■■■")
    answers: list[dict[str, Any]] = []

    def report() -> None:
        answers.append(ask(engine, "report_route", route_id=str(made.routes[0]), status="failed").result)

    with transaction(engine) as connection:
        claim_these(connection, [made.id])
        connection.execute("UPDATE routes SET status = 'unhealthy' WHERE id = %s", (made.routes[0],))
        reporter = threading.Thread(target=report)
        reporter.start()
        _wait_until_blocked(engine)
    reporter.join(10)
    assert answers[0]["applied"] is True
    assert drawn(engine, made.id) == "■■"


REFUSALS: dict[str, tuple[str, dict[str, Any], type[RollwayError], tuple[str, ...]]] = {
    "an unknown command": ("explode", {}, UnknownCommandError, ("rollway.explode", "rollway.scale")),
    "no payload": ("scale", {}, InvalidInputError, ("deployment", "desired_replicas")),
    "a field too many": ("destroy", {"deployment": "web", "forc": True}, InvalidInputError, ("forc",)),
    "a name with a space": ("create_deployment", {"deployment": "my web"}, InvalidInputError, ("deployment",)),
    "fewer than none": (
        "scale",
        {"deployment": "web", "desired_replicas": -1},
        InvalidInputError,
        ("desired_replicas",),
    ),
    "half a replica": (
        "scale",
        {"deployment": "web", "desired_replicas": 1.5},
        InvalidInputError,
        ("desired_replicas",),
    ),
    "an unknown strategy": (
        "create_deployment",
        {"deployment": "api", "policy": {"strategy": "yolo"}},
        InvalidInputError,
        ("policy.strategy", "rolling_update", "yolo"),
    ),
    "a wrong policy": (
        "set_policy",
        {"deployment": "web", "policy": {"strategy": "rolling_update", "spec": {"max_surge": -1}}},
        InvalidInputError,
        ("policy.spec.max_surge",),
    ),
    "a name that is taken": ("create_deployment", {"deployment": "web"}, DeploymentExistsError, ("web",)),
    "no such deployment": ("destroy", {"deployment": "api"}, DeploymentNotFoundError, ("api",)),
    "nothing to scale": ("scale", {"deployment": "gone", "desired_replicas": 1}, DeploymentNotFoundError, ("gone",)),
    "a version gone by": (
        "scale",
        {"deployment": "web", "desired_replicas": 1, "expected_version": 7},
        StaleVersionError,
        ("web", "1", "7"),
    ),
    "another content under the same name": (
        "add_revision",
        {"deployment": "web", "name": "v1", "spec": OTHER_SPEC},
        RevisionExistsError,
        ("v1", "another name"),
    ),
    "a revision without a command": (
        "add_revision",
        {"deployment": "web", "spec": {"command": []}},
        InvalidInputError,
        ("spec.command",),
    ),
    "no such revision": (
        "activate_revision",
        {"deployment": "web", "revision": "v9"},
        RevisionNotFoundError,
        ("web", "v9"),
    ),
    "a revision of another deployment": (
        "activate_revision",
        {"deployment": "web", "revision": "foreign"},
        RevisionNotFoundError,
        ("web", "foreign"),
    ),
    "another rollout is under way": (
        "activate_revision",
        {"deployment": "rolls", "revision": "v1"},
        DeploymentAlreadyInProgressError,
        ("rolls", "v2", "supersede"),
    ),
    "a deployment on its way back": (
        "activate_revision",
        {"deployment": "returns", "revision": "v2"},
        DeploymentAlreadyInProgressError,
        ("rolling back", "v2", "supersede"),
    ),
    "activating what is being destroyed": (
        "activate_revision",
        {"deployment": "ends", "revision": "v2"},
        WrongStateError,
        ("ends", "destroying"),
    ),
    "scaling what is being destroyed": (
        "scale",
        {"deployment": "ends", "desired_replicas": 9},
        WrongStateError,
        ("ends", "destroying"),
    ),
    "no such route": ("report_route", {"route_id": str(uuid4()), "status": "failed"}, RouteNotFoundError, ("route",)),
    "a status that nobody can report": (
        "report_route",
        {"route_id": str(uuid4()), "status": "melted"},
        InvalidInputError,
        ("status", "healthy"),
    ),
}


def test_a_refusal_names_the_thing_survives_json_and_leaves_nothing_behind(
    engine: Engine, subtests: pytest.Subtests
) -> None:
    make_deployment(engine, name="web")
    rolls = make_deployment(engine, "■■|◇", name="rolls", status=PROVISIONING)
    make_deployment(engine, "■■|◇", name="returns", status=ROLLING_BACK)
    make_deployment(engine, name="ends", status=DESTROYING)
    make_deployment(engine, "", name="gone", status=DESTROYED)
    write(engine, "INSERT INTO revisions (deployment_id, name, spec) VALUES (%s, 'foreign', '{}')", rolls.id)
    before = everything(engine)
    for case, (task, payload, error, words) in REFUSALS.items():
        with subtests.test(case):
            with pytest.raises(error) as refused:
                ask(engine, task, **payload)
            assert everything(engine) == before
            told = json.loads(json.dumps(refused.value.as_json()))
            assert told["code"] == error.code
            assert [word for word in words if word not in told["message"]] == []


def test_a_running_replica_is_not_reported_without_an_address(engine: Engine) -> None:
    made = make_deployment(engine, "■■◇")
    before = everything(engine)
    with pytest.raises(InvalidInputError, match="address"):
        ask(engine, "report_route", route_id=str(made.routes[2]), status="healthy")
    assert everything(engine) == before


@pytest.mark.parametrize(
    ("task", "payload"),
    [
        ("create_deployment", {"deployment": "api", "policy": ROLLING}),
        ("add_revision", {"deployment": "web", "spec": OTHER_SPEC}),
        ("set_policy", {"deployment": "web", "policy": ROLLING}),
        ("activate_revision", {"deployment": "web", "revision": "v2"}),
        ("scale", {"deployment": "web", "desired_replicas": 4}),
        ("destroy", {"deployment": "web"}),
        ("report_route", {"status": "unhealthy"}),
    ],
)
def test_the_same_request_sent_eight_times_at_once_has_one_effect_and_equal_answers(
    database: str, engine: Engine, task: str, payload: dict[str, Any]
) -> None:
    made = make_deployment(engine)
    asked = {"request_id": "r-1", **payload, **({"route_id": str(made.routes[0])} if task == "report_route" else {})}
    many = [engine_on(database) for _ in range(4)]
    barrier, done = threading.Barrier(8, timeout=60), []

    def send(on: Engine) -> None:
        barrier.wait()
        done.append(ask(on, task, **asked))

    threads = [threading.Thread(target=send, args=(on,)) for on in many * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for on in many:
        on.dispose()
    assert sorted(one.repeated for one in done) == [False] + [True] * 7
    assert all(one.result == done[0].result for one in done)
    once = everything(engine)
    assert ask(engine, task, **asked).result == done[0].result
    assert everything(engine) == once
    assert len(once["commands"]) == 1
    assert len(history(engine)) == (task != "report_route")


def test_a_refused_request_can_be_sent_again_when_its_reason_is_gone(engine: Engine) -> None:
    with pytest.raises(DeploymentNotFoundError):
        ask(engine, "destroy", request_id="r-1", deployment="web")
    make_deployment(engine)
    done = ask(engine, "destroy", request_id="r-1", deployment="web")
    assert (done.repeated, done.status) == (False, DESTROYING)


@pytest.mark.parametrize(
    ("task", "payload"),
    [
        ("scale", {"deployment": "web", "desired_replicas": 5}),
        ("scale", {"deployment": "web", "desired_replicas": 4, "actor": "someone else"}),
        ("destroy", {"deployment": "web"}),
    ],
)
def test_a_request_id_is_good_for_one_request(engine: Engine, task: str, payload: dict[str, Any]) -> None:
    make_deployment(engine)
    ask(engine, "scale", request_id="r-1", deployment="web", desired_replicas=4)
    before = everything(engine)
    with pytest.raises(RequestIdReusedError, match="r-1"):
        ask(engine, task, request_id="r-1", **payload)
    assert everything(engine) == before


def test_a_command_with_the_version_it_saw_goes_through_once(engine: Engine) -> None:
    make_deployment(engine)
    done = ask(engine, "scale", deployment="web", desired_replicas=4, expected_version=1)
    with pytest.raises(StaleVersionError, match="version 2, not 1"):
        ask(engine, "scale", deployment="web", desired_replicas=5, expected_version=1)
    ask(engine, "scale", deployment="web", desired_replicas=5, expected_version=done.result["version"])


def test_a_command_that_waited_for_the_end_of_its_deployment_does_not_bring_it_back(engine: Engine) -> None:
    made = make_deployment(engine, "", status=DESTROYING)
    said: list[BaseException] = []

    def destroy() -> None:
        try:
            ask(engine, "destroy", deployment="web")
        except RollwayError as error:
            said.append(error)

    with transaction(engine) as connection:
        claim_these(connection, [made.id])
        connection.execute("UPDATE deployments SET lifecycle = 'destroyed' WHERE id = %s", (made.id,))
        late = threading.Thread(target=destroy)
        late.start()
        _wait_until_blocked(engine)
    late.join(10)
    assert [type(error) for error in said] == [DeploymentNotFoundError]
    assert snapshot(engine, made.id).status == DESTROYED


def test_a_lost_connection_is_not_seen_by_who_sends_a_command(engine: Engine) -> None:
    make_deployment(engine)
    ask(engine, "scale", deployment="web", desired_replicas=4)
    with psycopg.connect(engine.url.set(drivername="postgresql").render_as_string(hide_password=False)) as other:
        ended = other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    assert ended
    assert ask(engine, "scale", deployment="web", desired_replicas=5).result["to"] == 5


def _wait_until_blocked(engine: Engine) -> None:
    """Until somebody waits for a lock of ours."""
    eventually(
        lambda: read(
            engine, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
    )
