"""What is offered is taken and what is not offered is refused: asked of Postgres, and held against each command."""

from typing import Any, LiteralString

import pytest
from sqlalchemy import Engine

from api.people.doors import BUTTONS
from db.connection.transactions import in_transaction
from db.views.deployment_views import deployment_named
from db.views.rollout_records import past_of
from domain.commands.steering_command import SteeringCommand
from domain.model.states import DeploymentLifecycleStatus
from domain.planning.buttons import available_commands
from domain.steering.command_effect import Context
from domain.text.errors import RollwayError
from tests.support.pictures.pictures import DESTROYING, PROVISIONING, READY, ROLLING_BACK, SCALING
from tests.support.rows.deployments import ROLLING, SPEC, ask, make_deployment, write

BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": False}}
FIELDS: dict[str, dict[str, Any]] = {
    "activate": {"revision": "other"},
    "scale": {"desired_replicas": 9},
    "rolling-update": {"command": ["false"]},
}
TASKS = {
    verb: command.task.removeprefix("rollway.")
    for verb, command in BUTTONS.items()
    if issubclass(command, SteeringCommand)
}
PAUSED = "UPDATE deployments SET paused_at = clock_timestamp() WHERE name = %s"
STATES = [
    ("■■■", READY, ROLLING, ""),
    ("■■|◇", PROVISIONING, ROLLING, ""),
    ("■■|◇", PROVISIONING, ROLLING, PAUSED),
    ("■■■|□□□", PROVISIONING, BLUE_GREEN, ""),
    ("■■■|□□□", PROVISIONING, BLUE_GREEN, PAUSED),
    ("■■|◇", ROLLING_BACK, ROLLING, ""),
    ("■■|◇", ROLLING_BACK, ROLLING, PAUSED),
    ("■■", SCALING, None, ""),
    ("~~", DESTROYING, None, ""),
]


@pytest.mark.parametrize(("picture", "status", "policy", "then"), STATES)
def test_what_is_offered_is_taken_and_nothing_else(
    engine: Engine,
    picture: str,
    status: DeploymentLifecycleStatus,
    policy: dict[str, Any] | None,
    then: LiteralString,
) -> None:
    for verb in TASKS:
        made = make_deployment(engine, picture, name=f"web-{verb}", status=status, policy=policy)
        if then:
            write(engine, then, made.name)
        if status != DESTROYING:
            ask(engine, "add_revision", deployment=made.name, name="other", spec={**SPEC, "command": ["true"]})
        assert (verb in offered_to(engine, made.name)) is is_taken(engine, verb, made.name), verb


def offered_to(engine: Engine, name: str) -> tuple[str, ...]:
    def read(connection: Any) -> tuple[str, ...]:
        view = deployment_named(connection, name)
        taken = available_commands(view.snapshot, past_of(connection, view), Context("asked", view.now, view.id))
        return tuple(verb for verb, command in BUTTONS.items() if command in taken)

    return in_transaction(engine, read)


def is_taken(engine: Engine, verb: str, name: str) -> bool:
    try:
        result = ask(engine, TASKS[verb], deployment=name, **FIELDS.get(verb, {})).result
    except RollwayError:
        return False
    return not result["already"] and result.get("activation") not in ("resumed", "already_active")
