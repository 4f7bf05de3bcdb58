"""What reads answer, as JSON Schema has it: a view, alone or in a list, and what stands beside its fields."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from domain.commands.fields import REF

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """`listed`: whether it is a whole list of views, or a page of one; `more`: further fields and what they are."""

    views: tuple[type, ...]
    listed: Literal["", "whole", "page"] = ""
    more: Mapping[str, object] = field(default_factory=dict)
    beside: Mapping[str, object] = field(default_factory=dict)


def shape_of(read: Callable[..., Any]) -> Shape:
    """The shape that the annotation of a read says: a view, a list of views, or a document with its shape."""
    kind = get_type_hints(read, include_extras=True)["return"]
    match get_origin(kind), get_args(kind):
        case found, (_, Shape() as shape) if found is Annotated:
            return shape
        case found, views if found is list:
            return Shape(views, "whole")
    return Shape((kind,))


def schema_of(shape: Shape, components: dict[str, Schema]) -> Schema:
    """The JSON Schema of a shape; what that refers to goes into `components`."""
    parts = [schema_of_type(view, components) for view in shape.views]
    item: Schema = (
        parts[0] if len(parts) == 1 and not shape.more else {"allOf": [*parts, *_object(shape.more, components)]}
    )
    if not shape.listed:
        return item
    (around,) = _object({**shape.beside, **({"next": str | None} if shape.listed == "page" else {})}, components) or [
        {"type": "object", "properties": {}, "required": []}
    ]
    around["properties"]["items"] = {"type": "array", "items": item}
    around["required"].append("items")
    return around


def schema_of_type(
    kind: Any,  # noqa: ANN401  (any type that Pydantic knows)
    components: dict[str, Schema],
    mode: Literal["validation", "serialization"] = "serialization",
) -> Schema:
    """The JSON Schema of a type."""
    schema = TypeAdapter(kind).json_schema(ref_template=REF, mode=mode)
    components.update(schema.pop("$defs", {}))
    return schema


def _object(fields: Mapping[str, object], components: dict[str, Schema]) -> Iterable[Schema]:
    if not fields:
        return []
    properties = {name: schema_of_type(kind, components) for name, kind in fields.items()}
    return [{"type": "object", "properties": properties, "required": list(fields)}]
