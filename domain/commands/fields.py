"""The fields of a command as values, made once from its class: dialogs, plans, command lines and OpenAPI take these."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel

from domain.commands.base import Command, DeploymentCommand, Starting
from domain.text.validation_errors import meanings

_COMMON = {*Starting.model_fields, *DeploymentCommand.model_fields}
REF = "#/components/schemas/{model}"
Kind = Literal["text", "integer", "number", "boolean", "words", "values", "documents"]
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CommandField:
    """A field of a command.

    `kind`: `words` are several texts, `values` are fields with their values, `documents` are several of these.
    `least` and `most`: of a number, or of the characters of a text. `choices`: the only texts that are taken. `unit`:
    of a number. `names`: what a text is the name of. `example`: None where the class gives none. `is_needed`: whether
    it must be said.
    """

    name: str
    kind: Kind
    meaning: str
    is_needed: bool
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""
    names: str = ""
    example: Any = field(default=None, hash=False)
    default: Any = field(default=None, hash=False)


def model_schema(model: type[BaseModel]) -> Schema:
    """The JSON Schema of a model, with each field's docstring as its description."""
    schema = model.model_json_schema(ref_template=REF)
    meaning_of = meanings(model)
    for name, info in model.model_fields.items():
        if name in meaning_of:
            schema["properties"][info.alias or name]["description"] = meaning_of[name]
    return schema


@cache
def fields_of(command: type[Command]) -> tuple[CommandField, ...]:
    """The command's own fields, without actor, reason and the deployment in its path; needed ones come first."""
    schema = model_schema(command)
    needed = schema.get("required", ())
    inherited = {
        *Command.model_fields,
        "expected_version",
        *(["deployment"] if issubclass(command, DeploymentCommand) else []),
    }
    fields = [
        _field(name, _inlined(of_field, schema.get("$defs", {})), command, is_needed=name in needed)
        for name, of_field in schema["properties"].items()
        if name not in inherited
    ]
    return tuple(sorted(fields, key=lambda each: (not each.is_needed, each.name in _COMMON)))


def _field(name: str, schema: Schema, command: type[Command], *, is_needed: bool) -> CommandField:
    kind = _kind(schema)
    least, most = ("minLength", "maxLength") if kind == "text" else ("minimum", "maximum")
    return CommandField(
        name,
        kind,
        schema.get("description", ""),
        is_needed,
        least=schema.get(least),
        most=schema.get(most),
        choices=tuple(map(str, schema.get("enum", ()))),
        unit=schema.get("x-unit", "s" if name.endswith("seconds") else ""),
        names=schema.get("x-names", ""),
        example=command.example.get(name),
        default=schema.get("default"),
    )


def _kind(schema: Schema) -> Kind:
    match schema:
        case {"type": "integer"}:
            return "integer"
        case {"type": "number"}:
            return "number"
        case {"type": "boolean"}:
            return "boolean"
        case {"type": "string"}:
            return "text"
        case {"type": "array", "items": {"type": "string"}}:
            return "words"
        case {"type": "array"}:
            return "documents"
    return "values"


def _inlined(schema: Schema, models: Mapping[str, Schema]) -> Schema:
    """The schema of a field where it is not null, with what the field itself adds."""
    (first, *_) = _forms(schema, models)
    outer = {name: value for name, value in schema.items() if name not in ("anyOf", "$ref")}
    inner = {name: value for name, value in first.items() if name not in ("title", "description")}
    if "items" in inner:
        inner["items"] = next(_forms(inner["items"], models))
    return {**inner, **{name: value for name, value in outer.items() if name != "items"}}


def _forms(schema: Schema, models: Mapping[str, Schema]) -> Iterator[Schema]:
    for form in schema.get("anyOf", [schema]):
        if form.get("type") != "null":
            yield models[form["$ref"].rpartition("/")[2]] if "$ref" in form else form
