"""Shortens why a replica failed to one line that fits every place that says it."""

import re

_MOST_OF_REASON = 600
_LINES = 4
_MOST_OF_LINE = 160
_NAMES_THE_CAUSE = re.compile(r"(\w+\.)*\w*(Error|Exception)\b|panic:|fatal:", re.IGNORECASE)
"""The beginning of a line that names an exception in Python, Java and Node, a panic in Go, and other fatal errors."""


def failure_in_short(reason: str, log_tail: str | None) -> str:
    """The reason, the line of its log that names an error, and the last ones; at most some 1,500 characters.

    its process ended with exit code 3; its log ends: loading the model / out of memory
    its process ended with exit code 1; its log says: ModuleNotFoundError: No module named 'flask'; its log ends: bye
    """
    lines = [line.strip() for line in (log_tail or "").splitlines() if line.strip()]
    ends = lines[-_LINES:]
    cause = next((line for line in reversed(lines) if _NAMES_THE_CAUSE.match(line)), None)
    parts = [_cut(" ".join(reason.split()), _MOST_OF_REASON)]
    if cause is not None and cause != lines[-1]:
        parts.append(f"its log says: {_cut(cause, _MOST_OF_LINE)}")
        ends = [line for line in ends if line != cause]
    if ends:
        parts.append(f"its log ends: {' / '.join(_cut(line, _MOST_OF_LINE) for line in ends)}")
    return "; ".join(parts)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
