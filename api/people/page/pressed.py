"""What a form of the page says, as the fields of its command have it: browsers send texts alone."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from api.people.asking.strict_yaml import documents_of
from domain.commands.base import Command
from domain.commands.fields import CommandField, fields_of
from domain.words.errors import InvalidInputError


def body_of(command: type[Command], form: Mapping[str, str]) -> dict[str, Any]:
    """What was filled in. Raises InvalidInputError, which names what is not what its field takes."""
    said = {field.name: _value(field, form[field.name]) for field in fields_of(command) if form.get(field.name)}
    return {**said, **({"reason": form["reason"]} if form.get("reason") else {})}


def _value(field: CommandField, text: str) -> Any:  # noqa: ANN401  (JSON)
    try:
        match field.kind:
            case "integer" | "number" if text == "null":
                return None
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "boolean":
                return text == "true"
            case "words":
                return shlex.split(text)
            case "values" | "documents" as kind:
                return _as_json(text, is_single=kind == "values")
            case "text":
                return text
    except ValueError as error:
        why = "must be a number" if field.kind in ("integer", "number") else str(error)
        raise InvalidInputError(f"{field.name}: {why}", field=field.name) from None


def _as_json(text: str, *, is_single: bool) -> object:
    """What YAML says: a single value, or what several documents hold, or the list in one. Raises ValueError."""
    documents = documents_of(text)
    try:
        json.dumps(documents)
    except TypeError:
        raise ValueError("holds a date or another value that JSON has not; quote it if it is meant as text") from None
    match [document for document in documents if is_single or document is not None]:
        case [list(items)]:
            return items
        case [value] if is_single:
            return value
        case several if not is_single:
            return several
    raise ValueError("must hold one YAML document")
