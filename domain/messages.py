"""A message becomes a command: checked field by field, and refused with the field's name and what would be right."""

from pydantic import ValidationError

from domain.commands import COMMANDS, Command
from domain.errors import InvalidInputError, UnknownCommandError


def parse_command(task: str, payload: object) -> Command:
    """Raises UnknownCommandError, and InvalidInputError naming each wrong field and what would be right."""
    command = COMMANDS.get(task)
    if command is None:
        raise UnknownCommandError(f"{task} is no command; the commands are {', '.join(sorted(COMMANDS))}")
    try:
        parsed = command.model_validate(payload)
    except ValidationError as error:
        raise InvalidInputError.of(error) from None
    if field := _with_nul(parsed.model_dump()):
        raise InvalidInputError(f"{field}: a text cannot contain the character NUL; leave it out", field=field)
    return parsed


def _with_nul(value: object, path: str = "") -> str | None:
    """The path of the first text with a NUL in it: Postgres stores none."""
    match value:
        case str():
            return path if "\0" in value else None
        case dict():
            inner = [(str(key), item) for key, item in (*value.items(), *((key, key) for key in value))]
        case list() | tuple():
            inner = [(str(number), item) for number, item in enumerate(value)]
        case _:
            return None
    return next((found for key, item in inner if (found := _with_nul(item, f"{path}.{key}".lstrip(".")))), None)
