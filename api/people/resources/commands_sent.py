"""A command becomes a request: the other way round than `api.people.resources.commands`."""

from typing import Any
from urllib.parse import quote

from api.people.resources.table import IN_HEADERS, WRITES
from domain.commands.base import Command


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
