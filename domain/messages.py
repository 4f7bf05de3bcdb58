"""A message becomes a command: checked field by field, and refused with the field's name and what would be right."""

import json
from math import isfinite

from pydantic import BaseModel, ValidationError

from domain.commands import COMMANDS, MOST_COMMAND_BYTES, Command
from domain.errors import InvalidInputError, TooLargeError, UnknownCommandError
from domain.text import storable

_MOST_LEVELS = 32


def parse_command(task: str, payload: object) -> Command:
    """Raises UnknownCommandError, TooLargeError, and InvalidInputError naming each wrong field and what is right."""
    command = COMMANDS.get(task)
    if command is None:
        raise UnknownCommandError(f"{task} is no command; the commands are {', '.join(sorted(COMMANDS))}")
    if fault := _first_fault(payload):
        field, sentence = fault
        raise InvalidInputError(f"{field}: {sentence}" if field else sentence, field=field)
    try:
        parsed = command.model_validate(payload)
    except ValidationError as error:
        raise InvalidInputError.of(error) from None
    size = len(parsed.model_dump_json().encode())
    if size > MOST_COMMAND_BYTES:
        raise TooLargeError.of_size(size, MOST_COMMAND_BYTES, _large_part(parsed.model_dump(mode="json")))
    return parsed


def _first_fault(value: object, path: str = "", level: int = 0) -> tuple[str, str] | None:
    """The path of the first value that cannot be stored, with what would be right."""
    if level > _MOST_LEVELS:
        return path, f"is nested more than {_MOST_LEVELS} levels deep; make it flatter"
    inner: list[tuple[str, object]]
    match value:
        case str():
            fault = _fault_of(value)
            return (path, fault) if fault else None
        case float() if not isfinite(value):
            return path, "must be a finite number"
        case BaseModel():
            return _first_fault(value.model_dump(), path, level)
        case dict():
            inner = [(str(key), item) for key, item in (*value.items(), *((key, key) for key in value))]
        case list() | tuple():
            inner = [(str(number), item) for number, item in enumerate(value)]
        case _:
            return None
    found = (_first_fault(item, f"{path}.{storable(key)}".lstrip("."), level + 1) for key, item in inner)
    return next(filter(None, found), None)


def _fault_of(text: str) -> str | None:
    if "\0" in text:
        return "a text cannot contain the character NUL; leave it out"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "a text cannot contain half of a surrogate pair; write the whole character"
    return None


def _large_part(value: object, path: str = "") -> str:
    """The path of what makes it large: further down as long as one field is more than half of all."""
    if not isinstance(value, dict) or not value:
        return path
    sizes = {name: len(json.dumps(item)) for name, item in value.items()}
    name = max(sizes, key=sizes.__getitem__)
    return _large_part(value[name], f"{path}.{name}".lstrip(".")) if 2 * sizes[name] > sum(sizes.values()) else path
