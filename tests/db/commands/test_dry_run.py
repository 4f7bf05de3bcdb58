"""What a command would lead to, without giving it, is what it leads to when it is given."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine

from db.commands.dry_run import dry_run
from db.connection.transactions import in_transaction
from domain.commands.registry import parse_command
from domain.commands.steering_command import SteeringCommand
from domain.model.deployment import Deployment
from domain.planning.rollout_plan import plan
from domain.text.errors import DeploymentNotFoundError, RollwayError
from tests.support.pictures.pictures import PROVISIONING, READY, ROLLING_BACK
from tests.support.rows.deployments import ask, make_deployment, read, snapshot


def asked(word: str, **fields: object) -> SteeringCommand:
    command = parse_command(f"rollway.{word}", {"request_id": "in a plan", "deployment": "web", **fields})
    assert isinstance(command, SteeringCommand)
    return command


def left(deployment: Deployment) -> dict[str, Any]:
    """What a command leaves of a deployment, but for ids and times that only the command itself has."""
    rollout = deployment.rollout
    return {
        "status": deployment.status,
        "desired": deployment.desired_replicas,
        "paused": deployment.paused_at is not None,
        "is_deploying": deployment.deploying_revision_id is not None,
        "promote": rollout and rollout.promote_requested,
        "is_undo": rollout and rollout.is_undo,
        "policy": rollout and rollout.policy,
    }


@pytest.mark.parametrize(
    ("drawn", "status", "before", "word", "fields"),
    [
        ("■■■", READY, (), "activate_revision", {"revision": "v2"}),
        ("■■■", READY, (), "activate_revision", {"revision": "v2", "desired_replicas": 5}),
        ("■■|◇", PROVISIONING, ("pause",), "activate_revision", {"revision": "v1", "supersede": True}),
        ("■■■", READY, (), "rolling_update", {"command": ["another"]}),
        ("■■■", READY, (), "rolling_update", {"command": ["another"], "revision": "v9"}),
        ("■■■", READY, (), "rolling_update", {"revision": "v2"}),
        ("■■■", READY, (), "destroy", {}),
        ("■■■", READY, (), "restart", {}),
        ("■■■", READY, (), "scale", {"desired_replicas": 5}),
        ("■■|◇", PROVISIONING, (), "scale", {"desired_replicas": 2}),
        ("■■|◇", PROVISIONING, (), "pause", {}),
        ("■■|◇", PROVISIONING, ("pause",), "resume", {}),
        ("■■|◇", PROVISIONING, (), "abort", {}),
        ("■■|◇", PROVISIONING, (), "undo", {}),
        ("■■■", READY, (), "undo", {"revision": "v2"}),
        ("■■|◇", ROLLING_BACK, (), "retry", {}),
    ],
)
def test_a_deployment_is_left_as_was_foretold_and_foretelling_writes_nothing(
    engine: Engine, drawn: str, status: Any, before: tuple[str, ...], word: str, fields: dict[str, Any]
) -> None:
    made = make_deployment(engine, drawn, status=status)
    for verb in before:
        ask(engine, verb, deployment="web")
    rows = "SELECT (SELECT count(*) FROM revisions), (SELECT sum(version) FROM deployments)"
    stood = read(engine, rows)
    planned = in_transaction(engine, partial(dry_run, command=asked(word, **fields)))
    assert read(engine, rows) == stood
    ask(engine, word, deployment="web", **fields)
    assert left(planned.subject.deployment) == left(snapshot(engine, made.id))


def test_a_plan_of_the_way_back_brings_back_what_ran(engine: Engine) -> None:
    make_deployment(engine, "■■|■", status=PROVISIONING)
    found = in_transaction(engine, partial(dry_run, command=asked("abort")))
    planned = plan(found.subject, found.now, found.timings, lambda: 0.5)
    assert (planned.ends_ready, planned.waves[-1].picture) == (True, "■■■|")


def test_what_the_command_would_be_refused_for_is_refused(engine: Engine) -> None:
    for word in ("abort", "resume", "retry", "undo"):
        make = partial(dry_run, command=asked(word))
        with pytest.raises(DeploymentNotFoundError):
            in_transaction(engine, make)
    make_deployment(engine, "■■■", status=READY)
    for word in ("abort", "pause", "resume", "promote", "retry", "undo"):
        with pytest.raises(RollwayError) as foreseen:
            in_transaction(engine, partial(dry_run, command=asked(word)))
        with pytest.raises(type(foreseen.value)) as refused:
            ask(engine, word, deployment="web")
        assert str(foreseen.value) == str(refused.value)
