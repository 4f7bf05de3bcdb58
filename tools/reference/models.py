"""What a Pydantic model says of its fields: default, what is right there, and what each means."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from domain.text.validation_errors import meanings

REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One row of a table. `default`: as YAML, in backticks, or "required"."""

    name: str
    default: str
    right: str
    meaning: str

    @property
    def cells(self) -> list[str]:
        """For a table of Markdown."""
        return [f"`{self.name}`", self.default, self.right, self.meaning]


def rows_of(model: Any, *, without: frozenset[str] = frozenset()) -> list[FieldRow]:  # noqa: ANN401 -- or a dataclass
    """Every field in the order in which the model, or dataclass of Pydantic's, has them, inherited ones first."""
    schema = TypeAdapter(model).json_schema(by_alias=False)
    said = meanings(model)
    return [
        FieldRow(field.alias or name, _default(field), right(schema["properties"][name], schema), said.get(name, ""))
        for name, field in model.__pydantic_fields__.items()
        if name not in without
    ]


def inner(model: type[BaseModel], place: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """The models that fields of this one hold, at whatever depth, each behind its place, such as spec.judge."""
    for name, field in model.model_fields.items():
        for found in _models(field.annotation):
            yield f"{place}.{name}", found
            yield from inner(found, f"{place}.{name}")


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return REQUIRED
    value = field.get_default(call_default_factory=False)
    if value in (None, "", PydanticUndefined):
        return "none"
    return f"`{json.dumps(value, default=_plain)}`"


def _plain(value: object) -> object:
    return value.model_dump(mode="json", exclude_none=True) if isinstance(value, BaseModel) else str(value)


def right(field: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """What may stand in a field, in words, from its JSON schema."""
    if field.get("description") and "properties" not in field:
        return str(field["description"])
    if "$ref" in field:
        target = schema["$defs"][field["$ref"].rpartition("/")[2]]
        return "fields of its own, below" if "properties" in target else right({**target, "description": ""}, schema)
    if "anyOf" in field:
        parts = [part for part in field["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(right(part, schema) for part in parts))
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    return _of_type(field, schema)


def _of_type(field: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    match field.get("type"):
        case "boolean":
            return "true or false"
        case "integer" | "number" as kind:
            return _number(field, "a whole number" if kind == "integer" else "a number")
        case "array":
            return f"a list{_of(field.get('items', {}), schema)}"
        case "object":
            return f"names, each with its value{_of(field.get('additionalProperties'), schema)}"
        case "string":
            return f"text{_length(field)}"
    return "anything"


def _of(items: object, schema: Mapping[str, Any]) -> str:
    return f" of {right(items, schema)}" if isinstance(items, Mapping) and items else ""


def _number(field: Mapping[str, Any], kind: str) -> str:
    low, high = field.get("minimum"), field.get("maximum", field.get("le"))
    if "exclusiveMinimum" in field:
        return f"more than {field['exclusiveMinimum']:,}, up to {high:,}"
    return kind if low is None else f"{low:,} to {high:,}"


def _length(field: Mapping[str, Any]) -> str:
    return f", {field['maxLength']:,} characters at most" if "maxLength" in field else ""
