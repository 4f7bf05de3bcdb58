"""A word of snapshots and decisions, which JSON has as the string that it is."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any


class Word(StrEnum):
    """The words of snapshots and decisions: JSON has them as strings.

    Pydantic asks each member of another enum for its value, a call for each, fourteen for a step of three replicas.
    """

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: Callable[[object], dict[str, Any]]
    ) -> dict[str, Any]:
        """Pydantic reads it as any enum, and writes it as its string."""
        return {**handler(source), "serialization": {"type": "str"}}
