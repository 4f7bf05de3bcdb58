"""The models of the description, each once under `components/schemas`, by the name of its class or of its operation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from typing import Any

from pydantic import BaseModel, TypeAdapter

from api.people.reads.table import Shape
from domain.commands.fields import REF, Schema
from domain.words.faults import meanings

_PYTHONS_WORD = re.compile(r"\bNone\b")


@dataclass(slots=True)
class Components:
    """The models that were referred to so far."""

    schemas: dict[str, Schema] = field(default_factory=dict)

    def put(self, name: str, schema: Schema) -> Schema:
        """Keep a schema and what it refers to. Returns a reference to it. Raises ValueError where a name is two."""
        models = {**schema.pop("$defs", {}), name: schema}
        for each, model in models.items():
            if self.schemas.setdefault(each, model) != model:
                raise ValueError(f"{each} is two models")
        return {"$ref": REF.format(model=name)}

    def of_type(self, kind: Any) -> Schema:  # noqa: ANN401  (any type that Pydantic knows)
        """The schema of a type that is shown; of a class a reference to it."""
        schema = TypeAdapter(kind).json_schema(ref_template=REF, mode="serialization")
        if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, BaseModel | Enum)):
            return self.put(kind.__name__, schema)
        for name, model in schema.pop("$defs", {}).items():
            self.put(name, model)
        return schema

    def of_shape(self, shape: Shape, operation: str) -> Schema:
        """Return the schema of a read's answer: a view, or what is named after the operation that shows it."""
        name = "".join(map(str.capitalize, operation.split("_")))
        parts = [self.of_type(view) for view in shape.views] + ([self._object(shape.more)] if shape.more else [])
        item = parts[0] if len(parts) == 1 else {"allOf": parts}
        if shape.more or len(parts) > 1:
            item = self.put(f"{name}Item" if shape.listed else f"{name}Answer", item)
        if not shape.listed:
            return item
        around = self._object({**shape.beside, **({"next": str | None} if shape.listed == "page" else {})})
        around["properties"]["items"] = {"type": "array", "items": item}
        around["required"].append("items")
        return self.put(f"{name}Page" if shape.listed == "page" else f"{name}List", around)

    def _object(self, fields: Mapping[str, object]) -> Schema:
        properties = {name: self.of_type(kind) for name, kind in fields.items()}
        return {"type": "object", "properties": properties, "required": list(fields)}

    def told(self) -> dict[str, Schema]:
        """All of them by name, each field with what it means."""
        kinds = {kind.__name__: kind for kind in _models(BaseModel) if kind.__module__.startswith(("domain.", "api."))}
        return {
            name: _with_meanings(schema, kinds[name]) if name in kinds else schema
            for name, schema in sorted(self.schemas.items())
        }


def _models(kind: type[BaseModel]) -> set[type[BaseModel]]:
    return {kind}.union(*map(_models, kind.__subclasses__()))


def _with_meanings(schema: Schema, kind: type[BaseModel]) -> Schema:
    said = {kind.model_fields[name].alias or name: text for name, text in meanings(kind).items()}
    properties = {
        name: {**field, "description": said[name]} if name in said else field
        for name, field in schema.get("properties", {}).items()
    }
    return {**schema, **({"properties": properties} if properties else {})}


def in_jsons_words(document: Any) -> Any:  # noqa: ANN401  (JSON)
    """Write null for None in what is said for people: that is JSON's word for it."""
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
