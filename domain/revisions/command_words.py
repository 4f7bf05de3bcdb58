"""The words of a command: what Rollway fills in, and what only a shell would."""

import re
from collections.abc import Mapping, Sequence

_FILLED_IN = {"{port}": "PORT", "{host}": "HOST", "{route}": "ROLLWAY_ROUTE"}
_OF_A_SHELL = re.compile(r"\$(PORT|HOST|\{(PORT|HOST)\})(?![A-Za-z0-9_])")
_SHELLS = frozenset(("sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox"))
_CODE_FOLLOWS = ("-c", "-e", "--eval")


def filled_in(command: Sequence[str], told: Mapping[str, str]) -> list[str]:
    """The command of one replica, which is `told` its variables: ["--bind={port}"] -> ["--bind=8123"].

    Other braces stay as they are.
    """
    words = list(command)
    for mark, name in _FILLED_IN.items():
        words = [word.replace(mark, told[name]) for word in words]
    return words


def unfilled(command: Sequence[str]) -> str:
    """The first word with a $PORT or $HOST that nobody would replace, since no shell reads it; empty for none."""
    if any(word.rpartition("/")[2] in _SHELLS for word in command):
        return ""
    before = ("", *command)
    words = (word for word, previous in zip(command, before, strict=False) if previous not in _CODE_FOLLOWS)
    return next((word for word in words if _OF_A_SHELL.search(word)), "")
