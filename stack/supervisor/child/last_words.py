"""What the log of a part that has ended says about why."""

from pathlib import Path

_MOST_BYTES = 65_536
_LONGEST = 300


def last_words(log: Path, start: int) -> str:
    """The last line from `start` on that names an error, else the last line; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(start, log.stat().st_size - _MOST_BYTES))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    full = [line for line in lines if "No space left" in line]
    telling = [line for line in lines if "FATAL" in line or "Error" in line]
    return (full or telling or lines or [""])[-1][:_LONGEST]
