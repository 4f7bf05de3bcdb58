"""A message becomes a command: checked field by field, and refused with the field's name and what would be right."""

from pydantic import ValidationError

from domain.commands import COMMANDS, Command
from domain.errors import InvalidInputError, UnknownCommandError
from domain.text import storable, unstorable

_WORDS = frozenset({"actor", "reason", "detail"})
"""Said for people: what cannot be stored or shown is replaced there, and refused everywhere else."""


def parse_command(task: str, payload: object) -> Command:
    """Raises UnknownCommandError, and InvalidInputError naming each wrong field and what would be right."""
    command = COMMANDS.get(task)
    if command is None:
        raise UnknownCommandError(f"{task} is no command; the commands are {', '.join(sorted(COMMANDS))}")
    given = _with_storable_words(payload)
    if fault := unstorable(given):
        field, why = fault
        raise InvalidInputError(f"{field}: {why}" if field else f"the payload {why}", field=field)
    try:
        return command.model_validate(given)
    except ValidationError as error:
        raise InvalidInputError.of(error) from None


def _with_storable_words(payload: object) -> object:
    if not isinstance(payload, dict):
        return payload
    return {
        name: storable(value) if name in _WORDS and isinstance(value, str) else value for name, value in payload.items()
    }
