"""The OpenAPI description, made from the resources and the models of their commands."""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from functools import cache
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel, TypeAdapter

from api.people.doors import DOORS
from api.people.paths import named_in
from api.people.problems import MEDIA_TYPE
from api.people.reads.forecasts import plan_shape
from api.people.reads.read_table import READS, HttpResource, Read, Shape, shape_of
from api.people.requests import EventParameters, Parameters
from api.people.resources.command_resources import IN_HEADERS, PLANS, WRITES, Forecast, Write
from api.people.resources.host_joins import SealedSettings
from domain.commands.base import Command
from domain.commands.fields import REF, Schema, model_schema
from domain.installation.host_invitation import JOIN_PATH, JoinRequest
from domain.installation.tokens import Role
from domain.text.storable import DeploymentName, Name
from domain.text.validation_errors import meanings

_PYTHONS_WORD = re.compile(r"\bNone\b")


@dataclass(slots=True)
class Components:
    """The models that were referred to until now."""

    schemas: dict[str, Schema] = field(default_factory=dict)

    def put(self, name: str, schema: Schema) -> Schema:
        """Keep a schema and its definitions. Returns a reference. Raises ValueError where a name has two schemas."""
        models = {**schema.pop("$defs", {}), name: schema}
        for each, model in models.items():
            if self.schemas.setdefault(each, model) != model:
                raise ValueError(f"{each} is two models")
        return {"$ref": REF.format(model=name)}

    def of_type(self, kind: Any) -> Schema:  # noqa: ANN401  (any type that Pydantic knows)
        """The schema of a type; of a class a reference to it."""
        schema = TypeAdapter(kind).json_schema(ref_template=REF, mode="serialization")
        if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, BaseModel | Enum)):
            return self.put(kind.__name__, schema)
        for name, model in schema.pop("$defs", {}).items():
            self.put(name, model)
        return schema

    def of_shape(self, shape: Shape, operation: str) -> Schema:
        """The schema of a read's answer: a view, or a model named after the operation."""
        name = "".join(map(str.capitalize, operation.split("_")))
        parts = [self.of_type(view) for view in shape.views] + ([self._object(shape.more)] if shape.more else [])
        item = parts[0] if len(parts) == 1 else {"allOf": parts}
        if shape.more or len(parts) > 1:
            item = self.put(f"{name}Item" if shape.list_kind else f"{name}Answer", item)
        if not shape.list_kind:
            return item
        envelope = self._object({**shape.extras, **({"next": str | None} if shape.list_kind == "page" else {})})
        envelope["properties"]["items"] = {"type": "array", "items": item}
        envelope["required"].append("items")
        return self.put(f"{name}Page" if shape.list_kind == "page" else f"{name}List", envelope)

    def _object(self, fields: Mapping[str, object]) -> Schema:
        properties = {name: self.of_type(kind) for name, kind in fields.items()}
        return {"type": "object", "properties": properties, "required": list(fields)}

    def documented(self) -> dict[str, Schema]:
        """All schemas by name, each field with its meaning."""
        kinds = {kind.__name__: kind for kind in _models(BaseModel) if kind.__module__.startswith(("domain.", "api."))}
        return {
            name: _with_meanings(schema, kinds[name]) if name in kinds else schema
            for name, schema in sorted(self.schemas.items())
        }


def _models(kind: type[BaseModel]) -> set[type[BaseModel]]:
    return {kind}.union(*map(_models, kind.__subclasses__()))


def _with_meanings(schema: Schema, kind: type[BaseModel]) -> Schema:
    descriptions = {kind.model_fields[name].alias or name: text for name, text in meanings(kind).items()}
    properties = {
        name: {**field, "description": descriptions[name]} if name in descriptions else field
        for name, field in schema.get("properties", {}).items()
    }
    return {**schema, **({"properties": properties} if properties else {})}


def in_jsons_words(document: Any) -> Any:  # noqa: ANN401  (JSON)
    """Write null for None in texts for people: that is JSON's word for it."""
    match document:
        case dict():
            return {
                name: _PYTHONS_WORD.sub("null", part)
                if name in ("description", "summary") and isinstance(part, str)
                else in_jsons_words(part)
                for name, part in document.items()
            }
        case list():
            return [in_jsons_words(part) for part in document]
    return document


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
_LAST = "The id of the last event that was received: later events come first."
_HEADERS: Mapping[str, Schema] = {
    "Idempotency-Key": {"type": "string", "pattern": "^[ -~]{1,200}$", "description": _KEY},
    "If-Match": {"type": "string", "pattern": r'^("[0-9]{1,18}"|\*)$', "description": _IF_MATCH},
    "Last-Event-ID": {"type": "string", "pattern": "^[!-~]{1,100}$", "description": _LAST},
}


@cache
def openapi() -> Mapping[str, Any]:
    components = Components({"Problem": _PROBLEM})
    paths: dict[str, dict[str, Any]] = {}
    for resource in (*READS, *PLANS, *WRITES):
        operation = _operation(resource, components)
        paths.setdefault(resource.path, {})[resource.method.lower()] = operation
    paths["/v1/events"] = {"get": _events()}
    paths["/v1/login-links"] = {"post": _login_link(components)}
    paths[JOIN_PATH] = {"post": _host_join(components)}
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
            "schemas": components.documented(),
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
            body = _body(_trimmed(command, components), command.example)
        case Forecast(command=command):
            name, documented, headers = f"plan_{command.task.rpartition('.')[2]}", command, []
            answer = components.of_shape(plan_shape(command), name)
            body = _body(_trimmed(command, components), command.example)
        case Read():
            name, documented, headers = resource.name, resource.source, []
            answer = components.of_shape(shape_of(resource.source), name)
            body = _body_of(resource.parameters, components) if resource.method == "POST" else {}
    queried = _query(resource.parameters) if isinstance(resource, Read) and resource.method == "GET" else []
    path_parameters = [_in("path", field, _PATH[field], required=True) for field in named_in(resource.path)]
    operation = {"operationId": name, **_says(documented, resource)}
    if isinstance(resource, Forecast):
        operation["summary"] = f"Plan: {operation['summary']}"
    status = str(DOORS[resource.command].status if isinstance(resource, Write) else 200)
    return {
        **operation,
        "parameters": [*path_parameters, *queried, *(_in("header", field, _HEADERS[field]) for field in headers)],
        **body,
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


def _login_link(components: Components) -> dict[str, Any]:
    path = "Where the page logs in, with the secret in the fragment: behind the address of this server."
    link: Schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": path},
            "ends_at": {"type": "string", "format": "date-time"},
        },
        "required": ["path", "ends_at"],
    }
    return {
        "operationId": "make_login_link",
        "summary": "Make a link that logs in to the page once, within a minute, with the rights of the token.",
        "description": f"Needs the role {Role.VIEWER}.",
        "parameters": [],
        "responses": {"201": _json("Made.", components.put("LoginLink", link)), **_refused()},
    }


def _host_join(components: Components) -> dict[str, Any]:
    body = components.put("JoinRequest", model_schema(JoinRequest))
    return {
        "operationId": "join_host",
        "summary": "Get the sealed settings of the installation, for a machine that becomes a host.",
        "description": "Needs no token: 'rollway hosts join' sends what it makes of the secret of its line, once.",
        "security": [],
        "parameters": [],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": _json("The settings.", components.of_type(SealedSettings)), **_refused()},
    }


def _says(documented: object, resource: HttpResource) -> dict[str, str]:
    """The summary of a resource, from its docstring, and the role it needs."""
    first, _, more = (inspect.getdoc(documented) or "").partition("\n")
    who = f"Needs the role {resource.role}{' and a token for all deployments' if resource.is_of_fleet else ''}."
    return {"summary": first, "description": "\n\n".join([who, *([more.strip()] if more else [])])}


def _trimmed(command: type[Command], components: Components) -> Schema:
    """The command without the fields that its path and headers have."""
    schema = command.model_json_schema(ref_template=REF)
    elsewhere = {*IN_HEADERS, *named_in(DOORS[command].path)}
    for name in elsewhere & schema["properties"].keys():
        del schema["properties"][name]
    schema["required"] = [name for name in schema.get("required", []) if name not in elsewhere]
    return {**components.put(command.__name__, schema), "required": schema["required"]}


def _body_of(model: type[Parameters], components: Components) -> dict[str, Any]:
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
    """The responses of refusals: 4XX is wrong or not allowed, 5XX may be retried."""
    content = {MEDIA_TYPE: {"schema": {"$ref": REF.format(model="Problem")}}}
    return {status: {"description": says, "content": content} for status, says in _REFUSALS.items()}
