"""The OpenAPI description, made from the resources and the models of their commands."""

import inspect
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from pydantic import TypeAdapter

from api.people.asking.asked import EventParameters, Parameters
from api.people.problems import MEDIA_TYPE
from api.people.reads.decided import plan_shape
from api.people.reads.table import READS, HttpResource, Read, shape_of
from api.people.resources.components import Components, in_jsons_words
from api.people.resources.table import IN_HEADERS, PLANS, WRITES, Forecast, Write
from domain.commands.base import Command
from domain.commands.fields import REF, Schema, model_schema
from domain.installation.tokens import Role
from domain.words.names import DeploymentName, Name, named_in

_PROBLEM: Schema = {
    "type": "object",
    "description": "A refusal, as RFC 9457 has it.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "A sentence for people: what is wrong and what would be right."},
        "code": {"type": "string", "description": "For programs; docs/http-api.md lists them."},
        "field": {"type": "string", "description": "The path of the field that is wrong."},
        "values": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["type", "title", "status", "detail", "code", "values"],
    "example": {
        "type": "urn:rollway:stale_version",
        "title": "The caller's version of the deployment is no longer the current one",
        "status": 412,
        "detail": "web is at version 8, not 7; the last to steer it was ann (scale); look at it again, then repeat",
        "code": "stale_version",
        "values": {"deployment": "web", "version": "8", "expected": "7", "last_actor": "ann"},
    },
}

_REFUSALS = {"4XX": "Refused, and why.", "5XX": "Not done: PostgreSQL does not answer, or Rollway is at fault."}
_ALIVE: Schema = {
    "type": "object",
    "properties": {"status": {"type": "string"}, "now": {"type": "string", "format": "date-time"}},
    "required": ["status"],
}
_UUID: Schema = {"type": "string", "format": "uuid"}
_PATH: Mapping[str, Schema] = {
    "deployment": TypeAdapter(DeploymentName).json_schema(),
    "revision": TypeAdapter(Name).json_schema(),
    "subscription": TypeAdapter(Name).json_schema(),
    "freeze": TypeAdapter(Name).json_schema(),
    "group": TypeAdapter(Name).json_schema(),
    "host": {"type": "string", "minLength": 1, "maxLength": 63},
    "rollout": _UUID,
    "route_id": _UUID,
}
_KEY = "Sent again with the same key, nothing is done twice, and the first answer comes back."
_IF_MATCH = "The ETag of the deployment as the sender saw it; 412 when it has changed since."
_LAST = "The id of the event that was heard last: what has happened since comes first."
_HEADERS: Mapping[str, Schema] = {
    "Idempotency-Key": {"type": "string", "pattern": "^[ -~]{1,200}$", "description": _KEY},
    "If-Match": {"type": "string", "pattern": r'^("[0-9]{1,18}"|\*)$', "description": _IF_MATCH},
    "Last-Event-ID": {"type": "string", "pattern": "^[!-~]{1,100}$", "description": _LAST},
}


@cache
def openapi() -> Mapping[str, Any]:
    """The document."""
    components = Components({"Problem": _PROBLEM})
    paths: dict[str, dict[str, Any]] = {}
    for resource in (*READS, *PLANS, *WRITES):
        operation = _operation(resource, components)
        paths.setdefault(resource.path, {})[resource.method.lower()] = operation
    paths["/v1/events"] = {"get": _events()}
    for name, says in (("livez", "Whether this process serves."), ("readyz", "Whether it reaches PostgreSQL, too.")):
        answers = {"200": _json("It does.", components.put("Alive", dict(_ALIVE))), **_refused()}
        paths[f"/{name}"] = {"get": {"operationId": name, "summary": says, "security": [], "responses": answers}}
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Rollway",
            "version": version("rollway"),
            "summary": "What people and services ask.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {"url": "http://127.0.0.1:7072", "description": "The stack of this machine, as `rollway up` runs it."}
        ],
        "security": [{"token": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": components.told(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return dict(in_jsons_words(document))


def _operation(resource: HttpResource, components: Components) -> dict[str, Any]:
    documented: object
    match resource:
        case Write(command=command):
            headers = ["Idempotency-Key", *(["If-Match"] if "expected_version" in command.model_fields else [])]
            name, documented = command.task.rpartition(".")[2], command
            answer = components.of_type(command.answer)
            asked = _body(_trimmed(command, components), command.door.example)
        case Forecast(command=command):
            name, documented, headers = f"plan_{command.task.rpartition('.')[2]}", command, []
            answer = components.of_shape(plan_shape(command), name)
            asked = _body(_trimmed(command, components), command.door.example)
        case Read():
            name, documented, headers = resource.name, resource.source, []
            answer = components.of_shape(shape_of(resource.source), name)
            asked = _asked(resource.parameters, components) if resource.method == "POST" else {}
    queried = _query(resource.parameters) if isinstance(resource, Read) and resource.method == "GET" else []
    named = [_in("path", field, _PATH[field], required=True) for field in named_in(resource.path)]
    said = {"operationId": name, **_says(documented, resource)}
    if isinstance(resource, Forecast):
        said["summary"] = f"Plan: {said['summary']}"
    status = str(resource.command.door.status if isinstance(resource, Write) else 200)
    return {
        **said,
        "parameters": [*named, *queried, *(_in("header", field, _HEADERS[field]) for field in headers)],
        **asked,
        "responses": {status: _json("Done.", answer), **_refused()},
    }


def _events() -> dict[str, Any]:
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    return {
        "operationId": "events",
        "summary": "What changes, as server-sent events: `deployment` and `history`.",
        "description": f"Needs the role {Role.VIEWER}. The stream lasts until one of the two ends it.",
        "parameters": [*_query(EventParameters), _in("header", "Last-Event-ID", _HEADERS["Last-Event-ID"])],
        "responses": {"200": {"description": "Events.", "content": content}, **_refused()},
    }


def _says(documented: object, resource: HttpResource) -> dict[str, str]:
    """The docstring of a resource, and who may ask."""
    first, _, more = (inspect.getdoc(documented) or "").partition("\n")
    who = f"Needs the role {resource.role}{' and a token for all deployments' if resource.is_of_fleet else ''}."
    return {"summary": first, "description": "\n\n".join([who, *([more.strip()] if more else [])])}


def _trimmed(command: type[Command], components: Components) -> Schema:
    """The command without what its path and its headers say."""
    schema = command.model_json_schema(ref_template=REF)
    elsewhere = {*IN_HEADERS, *named_in(command.door.path)}
    for name in elsewhere & schema["properties"].keys():
        del schema["properties"][name]
    schema["required"] = [name for name in schema.get("required", []) if name not in elsewhere]
    return {**components.put(command.__name__, schema), "required": schema["required"]}


def _asked(model: type[Parameters], components: Components) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template=REF)
    return _body({**components.put(model.__name__, schema), "required": schema.get("required", [])}, {})


def _query(model: type[Parameters]) -> list[Schema]:
    return [_in("query", name, schema) for name, schema in model_schema(model).get("properties", {}).items()]


def _in(where: str, name: str, schema: Schema, *, required: bool = False) -> Schema:
    return {"in": where, "name": name, "required": required, "schema": schema}


def _body(schema: Schema, example: Mapping[str, Any]) -> dict[str, Any]:
    """`schema`: a reference, with what it requires."""
    content = {"schema": {"$ref": schema["$ref"]}, **({"example": example} if example else {})}
    return {"requestBody": {"required": bool(schema["required"]), "content": {"application/json": content}}}


def _json(says: str, schema: Schema) -> Schema:
    return {"description": says, "content": {"application/json": {"schema": schema}}}


def _refused() -> dict[str, Schema]:
    """Return the schemas of refusals: 4XX is wrong or not allowed, 5XX may be asked again."""
    content = {MEDIA_TYPE: {"schema": {"$ref": REF.format(model="Problem")}}}
    return {status: {"description": says, "content": content} for status, says in _REFUSALS.items()}
