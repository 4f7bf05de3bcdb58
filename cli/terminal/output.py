"""Lines and tables for terminals and pipes, and JSON for scripts."""

import codecs
import dataclasses
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from domain.text.numbers import duration
from domain.text.storable import storable

_PIPE_WIDTH = 400
_OBEYED = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class _Printer(Console):
    """Prints control characters visibly, so that no reason, name or log line moves the cursor or sets the title."""

    def on_broken_pipe(self) -> None:
        """Raise, as the reader has gone: a command that follows something ends by that."""
        raise BrokenPipeError

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The printed text in segments; colours are no part of their texts."""
        text = (
            segment if segment.control else segment._replace(text=storable(segment.text))
            for segment in super().render(renderable, options)
        )
        return text if self.is_terminal else _without_padding(text)


def _without_padding(segments: Iterable[Segment]) -> Iterable[Segment]:
    """Remove the blanks at the end of lines, with which a table fills its last column."""
    blanks: list[Segment] = []
    for segment in segments:
        text = segment.text.rstrip(" ")
        if text.startswith("\n"):
            blanks.clear()
        if text:
            yield from blanks
            yield segment._replace(text=text)
            blanks = []
        if text != segment.text:
            blanks.append(segment._replace(text=segment.text[len(text) :]))
    yield from blanks


def printer(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A printer of text as it is, except for control characters.

    Where the output is no terminal there are no colours, no wrapping and no padding; with NO_COLOR no escapes at all.
    """
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return _Printer(
        stderr=stderr,
        quiet=quiet,
        width=width,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )


def program() -> str:
    """The command as it is typed here: `rollway`, or the path of the call where a shell does not find it."""
    called, path = sys.argv[0], shutil.which("rollway")
    if Path(called).name != "rollway" or (path and Path(path).samefile(called)):
        return "rollway"
    return called


def print_json(document: object) -> None:
    """Print a document, indented; dataclasses become objects, times ISO 8601 in UTC."""
    unicode = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    text = json.dumps(document, default=_plain, indent=2, ensure_ascii=not unicode)
    typer.echo(_OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def print_diff(lines: Iterable[str]) -> None:
    """Lines as `diff -u` has them, in its usual colours."""
    console = printer()
    for line in lines:
        console.print(line, style={"+": "green", "-": "red", "@": "cyan"}.get(line[:1], ""))


def columns(*names: str) -> Table:
    """A table without lines, as wide as its content; only the last column is wrapped when there is no room."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for name in names:
        table.add_column(name, no_wrap=name != names[-1], overflow="ellipsis" if name != names[-1] else "fold")
    return table


def ago(at: datetime, now: datetime) -> str:
    """The time before `now`, roughly: 5 min ago."""
    return f"{roughly(now - at)} ago"


def roughly(span: timedelta) -> str:
    """The greatest unit alone: 4 s, 5 min, 3 h, 2 d."""
    return " ".join(duration(span).split()[:2])


def in_seconds(seconds: float) -> str:
    """0.3 s, with a decimal below ten; then as `roughly`."""
    return f"{seconds:.1f} s" if seconds < 10 else roughly(timedelta(seconds=seconds))  # noqa: PLR2004


def _plain(value: object) -> dict[str, object] | str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value.isoformat() if isinstance(value, datetime) else str(value)
