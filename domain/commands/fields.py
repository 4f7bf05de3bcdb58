"""The fields of a command as values, made once from its class, for dialogs, plans, command lines and OpenAPI."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from domain.commands.base import Command, DeploymentCommand, Starting
from domain.model.policy import RolloutLimits
from domain.strategies.builtin import STRATEGIES
from domain.text.validation_errors import meanings, models_in

_COMMON = {*Starting.model_fields, *DeploymentCommand.model_fields}
REF = "#/components/schemas/{model}"
Kind = Literal["text", "integer", "number", "amount", "boolean", "words", "values", "variables", "items", "documents"]
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CommandField:
    """A field of a command.

    `kind`: `words` are several texts, `amount` is a number or a text such as 25%, `values` are fields with their
    values, `variables` are names each with a text, `items` are several `values`, `documents` are those of a file.
    `least` and `most`: of a number, or of the characters of a text. `choices`: the only allowed texts. `unit`: of a
    number. `names`: the kind of thing that a text names. `example`: None where the class gives none. `is_needed`:
    whether it is required. `may_be_null`: whether null is a value of it. `fields`: those of `values` and of each of
    `items`, and those that a variable may have in place of a text. `when`: the choice that it belongs to, such as
    `strategy=canary`; empty: any.
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
    example: Any = None
    default: Any = None
    may_be_null: bool = False
    fields: "tuple[CommandField, ...]" = ()
    when: str = ""


def model_schema(model: Any) -> Schema:  # noqa: ANN401 -- a model of Pydantic's, or a dataclass of Pydantic's
    """The JSON Schema of a model, with each field's docstring as its description."""
    schema = TypeAdapter(model).json_schema(ref_template=REF)
    for name, meaning in meanings(model).items():
        schema["properties"][model.__pydantic_fields__[name].alias or name]["description"] = meaning
    return schema


@cache
def fields_of(command: type[Command]) -> tuple[CommandField, ...]:
    """The command's own fields, without actor, reason and the deployment in its path; needed ones come first."""
    inherited = {
        *Command.model_fields,
        "expected_version",
        *(["deployment"] if issubclass(command, DeploymentCommand) else []),
    }
    fields = [
        replace(each, example=command.example.get(each.name))
        for each in _fields_in(command)
        if each.name not in inherited
    ]
    return tuple(sorted(fields, key=lambda each: (not each.is_needed, each.name in _COMMON)))


@cache
def _fields_in(model: Any) -> tuple[CommandField, ...]:  # noqa: ANN401 -- as above
    schema = model_schema(model)
    needed = schema.get("required", ())
    return tuple(
        _field(name, of_field, schema.get("$defs", {}), _inner(model, name), is_needed=name in needed)
        for name, of_field in schema["properties"].items()
    )


def _inner(model: Any, name: str) -> tuple[CommandField, ...]:  # noqa: ANN401 -- as above
    """The fields of a field that is a model, or has several of one."""
    inner = next(models_in(model.__pydantic_fields__[name].annotation), None)
    return _fields_in(inner) if inner else ()


def _field(
    name: str, schema: Schema, models: Mapping[str, Schema], inner: tuple[CommandField, ...], *, is_needed: bool
) -> CommandField:
    whole = _inlined(schema, models)
    kind: Kind = whole.get("x-kind") or _kind(whole)
    least, most = ("minLength", "maxLength") if kind == "text" else ("minimum", "maximum")
    return CommandField(
        name,
        kind,
        whole.get("description", ""),
        is_needed,
        least=whole.get(least),
        most=whole.get(most),
        choices=tuple(map(str, whole.get("enum", ()))),
        unit=whole.get("x-unit", "s" if name.endswith("seconds") else ""),
        names=whole.get("x-names", ""),
        default=whole.get("default"),
        may_be_null={"type": "null"} in schema.get("anyOf", ()),
        fields=() if kind == "documents" else _of_policy() if whole.get("x-fields") == "policy" else inner,
        when=whole.get("x-when", ""),
    )


def field_at(model: Any, path: str) -> CommandField:  # noqa: ANN401 -- as above
    """The field of a model at a path such as revision.docker.image."""
    name, _, inner = path.partition(".")
    result = next(each for each in _fields_in(model) if each.name == name)
    for part in inner.split(".") if inner else ():
        result = next(each for each in result.fields if each.name == part)
    return result


@cache
def _of_policy() -> tuple[CommandField, ...]:
    """The fields of a policy: the strategy, the settings of each, and the limits."""
    strategy = CommandField(
        "strategy",
        "text",
        "How a rollout gets from one revision to the next.",
        is_needed=True,
        choices=tuple(STRATEGIES),
    )
    settings = [
        CommandField(
            "spec",
            "values",
            (each.spec_model.__doc__ or "").partition("\n")[0],
            is_needed=False,
            default={},
            fields=_fields_in(each.spec_model),
            when=f"strategy={name}",
        )
        for name, each in STRATEGIES.items()
    ]
    limits = CommandField(
        "limits",
        "values",
        "The limits of a rollout's time and failures.",
        is_needed=False,
        default={},
        fields=_fields_in(RolloutLimits),
    )
    return (strategy, *settings, limits)


def _kind(schema: Schema) -> Kind:
    match schema:
        case {"type": "integer"}:
            return "integer"
        case {"type": "number"}:
            return "number"
        case {"type": "boolean"}:
            return "boolean"
        case {"type": "amount"}:
            return "amount"
        case {"type": "string"}:
            return "text"
        case {"type": "array", "items": {"type": "string"}}:
            return "words"
        case {"type": "array"}:
            return "items"
        case {"additionalProperties": dict()} | {"patternProperties": dict()}:
            return "variables"
    return "values"


def _inlined(schema: Schema, models: Mapping[str, Schema]) -> Schema:
    """The schema of a field where it is not null, with what the field itself adds."""
    forms = list(_forms(schema, models))
    if "string" in (kinds := {form.get("type") for form in forms}) and kinds & {"integer", "number"}:
        return {**schema, "type": "amount"}
    inner = dict(forms[0])
    if "items" in inner:
        inner["items"] = next(_forms(inner["items"], models))
    return {**inner, **{name: value for name, value in schema.items() if name != "items"}}


def _forms(schema: Schema, models: Mapping[str, Schema]) -> Iterator[Schema]:
    if "anyOf" in schema:
        for form in schema["anyOf"]:
            yield from _forms(form, models)
    elif schema.get("type") != "null":
        yield models[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
