"""The resources that carry out or plan a command: path, method, who may ask; and a command as the request that asks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

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


def request_of(command: Command) -> tuple[str, str, dict[str, Any], dict[str, str]]:
    """Method, path, body and headers. The actor is the name of the token that is shown with it."""
    (write,) = (write for write in WRITES if write.command is type(command))
    values = command.model_dump(mode="json")
    named = {name: values[name] for name in values if f"{{{name}}}" in write.path}
    body = {name: value for name, value in values.items() if name not in named and name not in IN_HEADERS}
    headers = {"idempotency-key": command.request_id}
    if values.get("expected_version") is not None:
        headers["if-match"] = f'"{values["expected_version"]}"'
    path = write.path.format(**{name: quote(str(value), "") for name, value in named.items()})
    return write.method, path, body, headers
