"""Lines and tables for terminals and pipes, and JSON for scripts."""

import dataclasses
import json
import re
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from domain.text import storable

_PIPE_WIDTH = 400
_OBEYED = re.compile("[\x7f-\x9f]")


class _Printer(Console):
    """Shows what a terminal would obey, so that no reason, name or log line moves the cursor or sets the title."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed, in segments; colours are no part of their texts."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=storable(segment.text))


def printer(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Prints text as it is, control characters apart.

    No colours and no wrapping where the output is no terminal, or NO_COLOR is set.
    """
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return _Printer(stderr=stderr, quiet=quiet, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_json(document: object) -> None:
    """One document, indented; dataclasses become objects, times ISO 8601 in UTC."""
    text = json.dumps(document, default=_plain, indent=2, ensure_ascii=False)
    typer.echo(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def columns(*names: str) -> Table:
    """A table without lines, as wide as its content; only the last column is wrapped when there is no room."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for name in names:
        table.add_column(name, no_wrap=name != names[-1], overflow="ellipsis" if name != names[-1] else "fold")
    return table


def duration(span: timedelta) -> str:
    """4 s, 5 min 10 s, 3 h 20 min, 2 d 4 h; the sign is left out."""
    seconds = abs(round(span.total_seconds()))
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {unit} {rest} {smaller}" if rest else f"{seconds // size} {unit}"
    return f"{seconds} s"


def ago(at: datetime, now: datetime) -> str:
    """How long before `now`, roughly: 5 min ago."""
    return f"{roughly(now - at)} ago"


def roughly(span: timedelta) -> str:
    """The greatest unit alone: 4 s, 5 min, 3 h, 2 d."""
    return " ".join(duration(span).split()[:2])


def _plain(value: object) -> dict[str, object] | str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value.isoformat() if isinstance(value, datetime) else str(value)
