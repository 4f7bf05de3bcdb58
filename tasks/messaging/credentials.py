"""The keys that commands are signed with, and the targets of webhooks: from files that their owner alone can read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from domain.outbox.targets import Target, parse_targets
from domain.text.errors import InvalidInputError
from tasks.messaging.signature import parse_keys
from tasks.task_settings import settings

T = TypeVar("T")
_OTHERS = 0o077


def command_keys() -> Mapping[str, str] | None:
    """The key of each sender; None where commands need not be signed. Raises InvalidInputError.

    Read each time, so that a key that is added or taken away counts at once.
    """
    path = settings().command_keys
    return None if path is None else read_keys(path)


def read_keys(path: Path) -> Mapping[str, str]:
    """The key of each sender in a file. Raises InvalidInputError."""
    return _parsed(path, "ROLLWAY_COMMAND_KEYS", parse_keys)


def webhook_targets() -> Mapping[str, Target]:
    """Read where webhooks may go, by name: nowhere unless ROLLWAY_WEBHOOKS names a file. Raises InvalidInputError.

    Read each time too.
    """
    path = settings().webhooks
    return {} if path is None else _parsed(path, "ROLLWAY_WEBHOOKS", parse_targets)


def _parsed(path: Path, variable: str, parse: Callable[[str], T]) -> T:
    try:
        if path.stat().st_mode & _OTHERS:
            raise _refusal(variable, f"{path} can be read by others; 'chmod 600 {path}' mends it")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _refusal(variable, f"{path} cannot be read: {error}") from None
    try:
        return parse(text)
    except InvalidInputError as error:
        raise _refusal(variable, f"{path}: {error.message}") from None


def _refusal(variable: str, sentence: str) -> InvalidInputError:
    return InvalidInputError(f"{variable}: {sentence}", field=variable)
