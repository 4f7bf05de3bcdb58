"""Shortens why a replica failed to one line that fits every place that says it."""

_MOST_OF_REASON = 300


_LINES = 4


_MOST_OF_LINE = 160


def failure_in_short(reason: str, log_tail: str | None) -> str:
    """The reason, and the last lines of its log if it printed any; at most some 1,000 characters.

    its process ended with exit code 3; its log ends: loading the model / out of memory
    """
    lines = [line.strip() for line in (log_tail or "").splitlines() if line.strip()]
    ends = " / ".join(_cut(line, _MOST_OF_LINE) for line in lines[-_LINES:])
    said = _cut(" ".join(reason.split()), _MOST_OF_REASON)
    return f"{said}; its log ends: {ends}" if ends else said


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
