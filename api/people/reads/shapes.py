"""What reads answer, as JSON Schema has it: a view, alone or in a list, and what stands beside its fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints


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
