"""The keys that commands are signed with, from the file that ROLLWAY_COMMAND_KEYS names."""

from collections.abc import Mapping
from pathlib import Path

from domain.errors import InvalidInputError
from domain.signature import parse_keys
from tasks.settings import settings

_OTHERS = 0o077


def command_keys() -> Mapping[str, str] | None:
    """The key of each sender; None where commands need not be signed. Raises InvalidInputError.

    Read each time, so that a key that is added or taken away counts at once.
    """
    path = settings().command_keys
    return None if path is None else read_keys(path)


def read_keys(path: Path) -> Mapping[str, str]:
    """The key of each sender in a file that its owner alone can read. Raises InvalidInputError."""
    try:
        if path.stat().st_mode & _OTHERS:
            raise _refusal(f"{path} can be read by others; 'chmod 600 {path}' mends it")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _refusal(f"{path} cannot be read: {error}") from None
    try:
        return parse_keys(text)
    except InvalidInputError as error:
        raise _refusal(f"{path}: {error.message}") from None


def _refusal(sentence: str) -> InvalidInputError:
    return InvalidInputError(f"ROLLWAY_COMMAND_KEYS: {sentence}", field="ROLLWAY_COMMAND_KEYS")
