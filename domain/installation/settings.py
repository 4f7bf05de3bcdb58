"""Settings: what a process reads from its environment, checked once."""

from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from domain.words.errors import InvalidInputError


def absolute(path: object) -> object:
    """Return a path that is the same wherever the process runs. Raises ValueError for any other."""
    if not str(path).startswith("/"):
        raise ValueError(path)
    return path


class Settings(BaseModel):
    """Values from variables of the environment, or given by the names of the fields.

    A field's `validation_alias` is its variable, its `description` says what is right there, and `repr=False` marks a
    secret, which no message shows.
    """

    model_config = ConfigDict(frozen=True, validate_by_name=True)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """A variable that is empty counts as not set. Raises InvalidInputError naming the first that is wrong."""
        variables = {str(field.validation_alias): field for field in cls.model_fields.values()}
        given = {name: environment[name] for name in variables if environment.get(name)}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            name = str(error.errors()[0]["loc"][0])
        right = variables[name].description
        if name not in given:
            message = f"{name} is not set; it is {right}, or run 'rollway up'"
        else:
            shown = f", not {given[name]!r}" if variables[name].repr else ""
            message = f"{name} must be {right}{shown}"
        raise InvalidInputError(message, field=name)
