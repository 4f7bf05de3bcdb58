"""Lengths of time and instants, as people type them."""

import re
from datetime import datetime, timedelta

from cli.terminal.exits import UsageError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds_of(text: str, option: str) -> int:
    """The seconds of a length such as 90m. Raises UsageError, which names the option."""
    seconds = _seconds(text)
    if seconds is None:
        raise UsageError(
            f"{option} must be a number with s, m, h or d behind, such as 90m or 62h; {text!r} has no unit"
        )
    return seconds


def instant_of(text: str, option: str, now: datetime) -> datetime:
    """The instant: a length before `now`, or a date with or without a time, as clocks here show it.

    Raises UsageError, which names the option.
    """
    if (seconds := _seconds(text)) is not None:
        return now - timedelta(seconds=seconds)
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        right = "a length such as 90m or 2d, or a date such as 2026-11-28 or 2026-11-28T18:00"
        raise UsageError(f"{option} must be {right}; {text!r} is neither") from None


def _seconds(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,9})([smhd])", text)
    return int(match[1]) * _SECONDS[match[2]] if match else None
