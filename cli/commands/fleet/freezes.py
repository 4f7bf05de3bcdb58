"""`rollway freeze`, `unfreeze` and `freezes`: windows in which nothing starts."""

import re
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer
from rich.text import Text

from cli.options import AsJson
from cli.sending import Asker, asking
from cli.servers import Reader
from cli.terminal.exits import UsageError
from cli.terminal.output import columns, print_json, printer
from db.views.fleet.windows import FreezeView
from domain.commands.fleet import DeleteFreeze, SetFreeze
from domain.steering.freezes import instant
from domain.words.numbers import duration

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

_Freeze = Annotated[str, typer.Argument(metavar="NAME", help="Name of the freeze.", show_default=False)]
_Cron = Annotated[
    str | None, typer.Option("--cron", metavar="LINE", help="When it begins, each time.", show_default=False)
]
_Duration = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="How long it lasts: 90m, 62h, 2d.", show_default=False)
]
_Zone = Annotated[str, typer.Option("--time-zone", metavar="ZONE", help="Of the cron line, as Europe/Berlin.")]
_Start = Annotated[
    str | None,
    typer.Option("--starts-at", metavar="INSTANT", help="Once: 2026-12-24T18:00+01:00.", show_default=False),
]
_End = Annotated[str | None, typer.Option("--ends-at", metavar="INSTANT", help="And its end.", show_default=False)]
_Deployments = Annotated[
    list[str] | None,
    typer.Option(
        "--deployment",
        metavar="DEPLOYMENT",
        help="Over it, or with shop-* over all that begin so.",
        show_default="all",
    ),
]
_Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="GROUP", help="Over its deployments; may be repeated.", show_default=False),
]
_Pauses = Annotated[bool, typer.Option("--pause", help="What is under way waits too, its clocks standing still.")]


@asking
def freeze(
    *,
    name: _Freeze,
    cron: _Cron = None,
    lasts: _Duration = None,
    time_zone: _Zone = "UTC",
    starts_at: _Start = None,
    ends_at: _End = None,
    deployments: _Deployments = None,
    groups: _Groups = None,
    pause: _Pauses = False,
    asker: Asker,
) -> None:
    """Let nothing start in a window. Replaces the freeze of that name.

    'activate', 'apply', 'restart' and 'retry' are refused meanwhile, unless they say --through-freeze and a --reason.
    What is under way finishes, or with --pause waits until the end. Undo and abort are never frozen.
    """
    result = asker.send(
        SetFreeze,
        freeze=name,
        cron=cron,
        time_zone=time_zone,
        duration_seconds=_seconds(lasts) if lasts is not None else None,
        starts_at=starts_at,
        ends_at=ends_at,
        deployments=deployments or [],
        groups=groups or [],
        pauses=pause,
    )
    if asker.as_json:
        return print_json(result)
    with Reader() as reader:
        view = next((view for view in reader.views(FreezeView, "/v1/freezes") if view.name == name), None)
    return printer().print(f"{name}: {_when(view)}" if view else f"{name} is set")


@asking
def unfreeze(*, name: _Freeze, asker: Asker) -> None:
    """End a freeze. What it held goes on."""
    asker.say(f"{name} freezes nothing any more", asker.send(DeleteFreeze, freeze=name))


def freezes(*, as_json: AsJson = False) -> None:
    """Show in which windows nothing starts, and which of them are on."""
    with Reader() as reader:
        found = reader.views(FreezeView, "/v1/freezes")
    if as_json:
        return print_json([asdict(view) for view in found])
    if not found:
        return printer().print("There are no freezes; 'rollway freeze --help' says how to set one.")
    table = columns("NAME", "NOW", "WINDOW", "OVER", "UNDER WAY", "WHY")
    for view in found:
        over = ", ".join([*view.deployments, *(f"group {group}" for group in view.groups)]) or "all"
        now = Text(_when(view), "yellow" if view.frozen_until else "")
        table.add_row(view.name, now, _window(view), over, "pauses" if view.pauses else "finishes", view.reason)
    return printer().print(table)


def _seconds(text: str) -> int:
    """Raises UsageError for what is no duration."""
    found = re.fullmatch(r"(\d{1,9})([smhd])", text)
    if found is None:
        raise UsageError(f"--for must be a number with s, m, h or d behind, such as 90m or 62h; {text!r} is none")
    return int(found[1]) * _SECONDS[found[2]]


def _when(view: FreezeView) -> str:
    if view.frozen_until is not None:
        return f"on until {instant(view.frozen_until)}"
    return f"from {instant(view.next_start)}" if view.next_start is not None else "over"


def _window(view: FreezeView) -> str:
    if view.starts_at is not None and view.ends_at is not None:
        return f"{instant(view.starts_at)} to {instant(view.ends_at)}"
    lasts = timedelta(seconds=view.duration_seconds or 0)
    return f"{view.cron} {view.time_zone} for {duration(lasts)}"
