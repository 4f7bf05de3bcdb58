"""The OpenAPI description, made from the resources and the models of their commands."""

import inspect
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel, TypeAdapter

from api.people.asking.asked import EventParameters, Parameters
from api.people.problems import MEDIA_TYPE
from api.people.reads.decided import plan_shape
from api.people.reads.shapes import Schema, schema_of, shape_of
from api.people.resources.table import IN_HEADERS, PLANS, READS, WRITES, Forecast, HttpResource, Read, Write
from domain.commands.fields import REF, model_schema, named_in
from domain.words.names import DeploymentName, Name

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
    components: dict[str, Schema] = {"Problem": _PROBLEM}
    paths: dict[str, dict[str, Any]] = {}
    for resource in (*READS, *PLANS, *WRITES):
        operation = _operation(resource, components)
        paths.setdefault(resource.path, {})[resource.method.lower()] = operation
    paths["/v1/events"] = {"get": _events(components)}
    for name, says in (("livez", "Whether this process serves."), ("readyz", "Whether it reaches PostgreSQL, too.")):
        answers = {"200": _json("It does.", {"type": "object"}), "default": _refused()}
        paths[f"/{name}"] = {"get": {"operationId": name, "summary": says, "security": [], "responses": answers}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Rollway", "version": version("rollway"), "description": "What people and services ask."},
        "security": [{"token": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(resource: HttpResource, components: dict[str, Schema]) -> dict[str, Any]:
    match resource:
        case Write():
            said: dict[str, Any] = {
                "operationId": resource.command.task.rpartition(".")[2],
                **_says(resource.command, resource),
            }
            headers = [
                "Idempotency-Key",
                *(["If-Match"] if "expected_version" in resource.command.model_fields else []),
            ]
            answer = _model(resource.command.answer, components)
            body = _body(_trimmed(resource, components), resource.command.door.example)
        case Forecast():
            says = _says(resource.command, resource)
            said = {"operationId": f"plan_{resource.command.door.verb}", **says, "summary": f"Plan: {says['summary']}"}
            headers, answer = [], schema_of(plan_shape(resource.command), components)
            body = _body(_trimmed(resource, components), resource.command.door.example)
        case Read():
            said = {"operationId": resource.name, **_says(resource.source, resource)}
            headers, answer = [], schema_of(shape_of(resource.source), components)
            is_post = resource.method == "POST"
            body = _body(_model(resource.parameters, components), {}) if is_post else {}
            said["parameters"] = [] if is_post else _query(resource.parameters, components)
    named = [_in("path", name, _PATH[name], required=True) for name in named_in(resource.path)]
    parameters = [*named, *said.pop("parameters", []), *(_in("header", name, _HEADERS[name]) for name in headers)]
    status = str(resource.command.door.status if isinstance(resource, Write) else 200)
    return {
        **said,
        "parameters": parameters,
        **body,
        "responses": {status: _json("Done.", answer), "default": _refused()},
    }


def _events(components: dict[str, Schema]) -> dict[str, Any]:
    stream = {"description": "Events, until one of the two ends.", "content": {"text/event-stream": {"schema": {}}}}
    return {
        "operationId": "events",
        "summary": "What changes, as server-sent events: `deployment` and `history`. Needs the role viewer.",
        "parameters": [*_query(EventParameters, components), _in("header", "Last-Event-ID", _HEADERS["Last-Event-ID"])],
        "responses": {"200": stream, "default": _refused()},
    }


def _says(documented: object, resource: HttpResource) -> dict[str, str]:
    """The docstring of a resource, and who may ask."""
    who = f"Needs the role {resource.role}{' and a token for all deployments' if resource.is_of_fleet else ''}."
    return {"summary": (inspect.getdoc(documented) or "").partition("\n")[0], "description": who}


def _trimmed(write: Write | Forecast, components: dict[str, Schema]) -> Schema:
    """The command without what its path and its headers say."""
    schema = _model(write.command, components)
    elsewhere = {*IN_HEADERS, *named_in(write.path)}
    properties = {name: said for name, said in schema["properties"].items() if name not in elsewhere}
    return {
        **schema,
        "properties": properties,
        "required": [name for name in schema.get("required", []) if name not in elsewhere],
    }


def _model(model: type[BaseModel], components: dict[str, Schema]) -> Schema:
    """With what each field means."""
    schema = model_schema(model)
    components.update(schema.pop("$defs", {}))
    return schema


def _query(model: type[Parameters], components: dict[str, Schema]) -> list[Schema]:
    return [_in("query", name, schema) for name, schema in _model(model, components).get("properties", {}).items()]


def _in(where: str, name: str, schema: Schema, *, required: bool = False) -> Schema:
    return {"in": where, "name": name, "required": required, "schema": schema}


def _body(schema: Schema, example: Mapping[str, Any]) -> dict[str, Any]:
    content = {"schema": schema, **({"example": example} if example else {})}
    return {"requestBody": {"required": bool(schema.get("required")), "content": {"application/json": content}}}


def _json(says: str, schema: Schema) -> Schema:
    return {"description": says, "content": {"application/json": {"schema": schema}}}


def _refused() -> Schema:
    schema = {"$ref": REF.format(model="Problem")}
    return {"description": "Refused, and why.", "content": {MEDIA_TYPE: {"schema": schema}}}
