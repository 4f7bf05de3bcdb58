"""The resources that carry out or plan a command: each path with its method, who may ask, and which command it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from api.people.reads.table import HttpResource
from domain.commands.base import Command, DeploymentCommand
from domain.commands.registry import COMMANDS
from domain.installation.tokens import Role

IN_HEADERS = {
    "request_id": "the header Idempotency-Key",
    "actor": "the name of the token",
    "expected_version": "the header If-Match",
    "schema_version": "the path, as /v1",
}
"""Fields of commands that no body has, and what says the same over HTTP."""


@dataclass(frozen=True, slots=True)
class Write(HttpResource):
    """A command, as its class says."""

    command: type[Command]


@dataclass(frozen=True, slots=True)
class Forecast(HttpResource):
    """A plan of a command, asked for with the command's own body.

    It takes seconds of processor time, of which each token has so many.
    """

    command: type[Command]


WRITES: Sequence[Write] = tuple(
    Write(command.door.method, command.door.path, command.door.role, command, is_of_fleet=command.door.is_of_fleet)
    for command in COMMANDS.values()
)

PLANS: Sequence[Forecast] = tuple(
    Forecast("POST", f"{door.path}/plan", Role.VIEWER if issubclass(command, DeploymentCommand) else door.role, command)
    for command in COMMANDS.values()
    if (door := command.door).is_planned
)
"""What one deployment would do, who sees it may ask; what documents say is compared with what others may have."""
