"""Markdown: tables, and where a page comes from."""

import textwrap
from collections.abc import Iterable, Sequence

MADE = "Made from the code by `make reference`; a test keeps it true."


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar in a cell is escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def prose(text: str | None) -> str:
    """The paragraphs of a docstring, in lines that can be reviewed."""
    parts = [textwrap.fill(" ".join(part.split()), 120, break_on_hyphens=False) for part in (text or "").split("\n\n")]
    return "\n\n".join(part for part in parts if part) + "\n"


def page(title: str, *parts: str) -> str:
    """A whole page."""
    return "\n".join([f"# {title}\n", f"{MADE}\n", *(part.strip("\n") + "\n" for part in parts)])
