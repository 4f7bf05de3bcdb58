"""The resources that carry out or plan a command: path, method, role; and the command of a request."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from api.people.auth import names_withheld
from api.people.doors import DOORS
from api.people.reads.read_table import HttpResource
from db.commands.execute import Origin
from domain.commands.base import Command, DeploymentCommand
from domain.commands.registry import COMMANDS, parse_command
from domain.installation.tokens import NotAllowedError, Role, Token
from domain.text.errors import InvalidInputError
from tasks.command_tasks import run_command

IN_HEADERS = {
    "request_id": "the header Idempotency-Key",
    "actor": "the name of the token",
    "expected_version": "the header If-Match",
    "schema_version": "the path, as /v1",
}
"""Fields of commands that no body has, and their place in a request."""


@dataclass(frozen=True, slots=True)
class Write(HttpResource):
    """A command."""

    command: type[Command]


@dataclass(frozen=True, slots=True)
class Forecast(HttpResource):
    """A plan of a command, requested with the command's own body.

    It takes seconds of processor time, which each token has a limited amount of.
    """

    command: type[Command]


WRITES: Sequence[Write] = tuple(
    Write(DOORS[command].method, DOORS[command].path, command.role, command, is_of_fleet=command.is_of_fleet)
    for command in COMMANDS.values()
)


def _forecast(command: type[Command]) -> Forecast:
    role = Role.VIEWER if issubclass(command, DeploymentCommand) else command.role
    return Forecast("POST", f"{DOORS[command].path}/plan", role, command)


PLANS: Sequence[Forecast] = tuple(_forecast(command) for command in COMMANDS.values() if command.is_planned)
"""A plan for one deployment needs only a viewer of it; documents need the command's own role, as they are compared with
others."""


def request_of(command: Command) -> tuple[str, str, dict[str, Any], dict[str, str]]:
    """Method, path, body and headers of a command. The actor is the name of the token."""
    (write,) = (write for write in WRITES if write.command is type(command))
    values = command.model_dump(mode="json")
    in_path = {name: values[name] for name in values if f"{{{name}}}" in write.path}
    body = {name: value for name, value in values.items() if name not in in_path and name not in IN_HEADERS}
    headers = {"idempotency-key": command.request_id}
    if values.get("expected_version") is not None:
        headers["if-match"] = f'"{values["expected_version"]}"'
    path = write.path.format(**{name: quote(str(value), "") for name, value in in_path.items()})
    return write.method, path, body, headers


PATIENCE_SECONDS = 5.0
"""The wait of a command for Postgres: after a 503 a client can send it again with the same key."""

_KEY_LENGTH = 200
_ETAG = re.compile(r'"(\d{1,18})"')


def carry_out(
    write: Write, token: Token, path: Mapping[str, str], headers: Mapping[str, str], body: bytes
) -> dict[str, Any]:
    """The answer {"result", "repeated"}. Raises the refusals of `domain`, and NotAllowedError."""
    payload = {**payload_of(write, token, path, body), "request_id": _request_id(headers, token, path)}
    if "expected_version" in write.command.model_fields and headers.get("if-match", "*") != "*":
        payload["expected_version"] = _version(headers["if-match"])
    with names_withheld(token):
        origin = Origin(headers.get("traceparent"), role=token.role, sees=token.deployments)
        return run_command(write.command.task, payload, PATIENCE_SECONDS, origin)


def planned(forecast: Forecast, token: Token, path: Mapping[str, str], body: bytes) -> Command:
    """The command of a forecast. Raises what the command itself would be refused for at once."""
    payload = {**payload_of(forecast, token, path, body), "request_id": "in a plan"}
    return parse_command(forecast.command.task, payload)


def payload_of(resource: Write | Forecast, token: Token, path: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """The payload from path, body and token. Raises NotAllowedError and InvalidInputError."""
    token.refuse_below(resource.role)
    payload = {**fields_of(body, path), **path, "actor": token.name}
    if resource.command.is_of_fleet:
        token.refuse_others(None)
    elif not token.is_for_all:
        for document in _documents(payload):
            token.refuse_others(str(document.get("deployment")))
            _refuse_what_catches_all(token, document)
    return payload


def _documents(payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The documents of the command; anything else is refused when the payload is read."""
    return [document for document in payload.get("documents", [payload]) if isinstance(document, dict)]


def _refuse_what_catches_all(token: Token, document: Mapping[str, Any]) -> None:
    """Raises NotAllowedError: requests that belong to no deployment are nobody's to take."""
    traffic = document.get("traffic", document)
    if isinstance(traffic, dict) and traffic.get("path_prefix") == "/":
        message = (
            f"path_prefix / takes the requests that nobody else takes, and {token.name} is not for all deployments"
        )
        raise NotAllowedError(message, needed="a token for all deployments")


def fields_of(body: bytes, path: Mapping[str, str]) -> dict[str, Any]:
    """The fields of the body, which may be empty. Raises InvalidInputError."""
    try:
        fields = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise InvalidInputError("the body is no JSON", field="") from None
    if not isinstance(fields, dict):
        raise InvalidInputError("the body must be fields, each with its value", field="")
    elsewhere = {**IN_HEADERS, **dict.fromkeys(path, "the path")}
    for name in fields:
        if name in elsewhere:
            raise InvalidInputError(f"{name}: leave it out of the body; {elsewhere[name]} says it", field=name)
    return fields


def _request_id(headers: Mapping[str, str], token: Token, path: Mapping[str, str]) -> str:
    """The key, in the namespace of its token and deployment: nobody can use up another one's keys."""
    key = headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= _KEY_LENGTH and key.isascii() and key.isprintable()):
        right = f"1 to {_KEY_LENGTH} printable ASCII characters, new ones for each request"
        raise InvalidInputError(f"Idempotency-Key: must be {right}", field="Idempotency-Key")
    return f"{token.name}/{path.get('deployment', '')}/{key or uuid4()}"


def _version(etag: str) -> int:
    match = _ETAG.fullmatch(etag.strip())
    if match is None:
        raise InvalidInputError('If-Match: must be the ETag of the deployment, such as "7", or *', field="If-Match")
    return int(match[1])
