"""Every refusal of a command names the thing and leaves nothing behind."""

import json
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from domain.commands.base import StaleVersionError
from domain.commands.deployment_commands import DeploymentExistsError
from domain.commands.registry import UnknownCommandError
from domain.revisions.revision import RevisionExistsError
from domain.steering.activation import DeploymentAlreadyInProgressError
from domain.text.errors import (
    DeploymentNotFoundError,
    InvalidInputError,
    RevisionNotFoundError,
    RollwayError,
    RouteNotFoundError,
    WrongStateError,
)
from tests.support.pictures.pictures import DESTROYED, DESTROYING, PROVISIONING, ROLLING_BACK
from tests.support.rows.deployments import ask, make_deployment, write
from tests.support.rows.rows import everything
from tests.support.workers.payloads import ELSEWHERE

NEVER = {"strategy": "canary", "spec": {"min_ready_seconds": 60}, "limits": {"timeout_seconds": 60}}

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
    "a policy that can never succeed": (
        "set_policy",
        {"deployment": "web", "policy": NEVER},
        InvalidInputError,
        ("policy.spec.min_ready_seconds", "policy.limits.timeout_seconds", "every rollout would go back"),
    ),
    "a deployment with a policy that can never succeed": (
        "create_deployment",
        {"deployment": "api", "policy": NEVER},
        InvalidInputError,
        ("policy.spec.min_ready_seconds", "policy.limits.timeout_seconds"),
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
        {"deployment": "web", "name": "v1", "spec": {"command": ["sleep", "61"]}},
        RevisionExistsError,
        ("v1", "another name"),
    ),
    "a revision without a command": (
        "add_revision",
        {"deployment": "web", "spec": {"command": []}},
        InvalidInputError,
        ("spec.command",),
    ),
    "values of a revision that does not exist": (
        "add_revision",
        {"deployment": "web", "values_of": "v9", "spec": {"command": ["sleep", "61"], "env": {"A": "***"}}},
        RevisionNotFoundError,
        ("web", "v9"),
    ),
    "a value that the other revision does not have": (
        "add_revision",
        {"deployment": "web", "values_of": "v1", "spec": {"command": ["sleep", "61"], "env": {"A": "***"}}},
        InvalidInputError,
        ("spec.env.A", "v1"),
    ),
    "a value that is not shown": (
        "add_revision",
        {"deployment": "web", "spec": {"command": ["sleep", "61"], "env": {"A": "***"}}},
        InvalidInputError,
        ("env.A", "write the value itself"),
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
    made = make_deployment(engine, "■■◇", spec=ELSEWHERE)
    before = everything(engine)
    with pytest.raises(InvalidInputError, match="address is needed"):
        ask(engine, "report_route", route_id=str(made.routes[2]), status="healthy")
    assert everything(engine) == before
