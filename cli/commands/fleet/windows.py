"""`rollway freeze`, `group` and their kin: when rollouts start, and how many at once."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer
from rich.text import Text

from cli.client import Reader
from cli.options import AsJson
from cli.sending import Asker
from cli.subcommands import sends
from cli.terminal.durations import seconds_of
from cli.terminal.output import columns, print_json, printer
from db.views.fleet_settings import FreezeView, GroupView
from domain.commands.deeds import deed
from domain.commands.fleet_commands import DeleteFreeze, DeleteGroup, SetFreeze, SetGroup
from domain.steering.gates import instant
from domain.text.numbers import duration

_LASTS = "How long it lasts, from now on without --cron: 90m, 62h, 2d."
_Duration = Annotated[str | None, typer.Option("--for", metavar="DURATION", help=_LASTS, show_default=False)]


@sends(SetFreeze, deployments="--deployment", groups="--group", pauses="--pause")
def freeze(asker: Asker, *, duration_seconds: _Duration = None, **fields: object) -> None:
    """Block new rollouts for a time. Replaces the freeze of that name.

    'activate', 'apply', 'restart' and 'retry' are refused meanwhile, except with --through-freeze and a --reason.
    What is under way finishes, or with --pause waits until the end. Undo and abort are never frozen.
    """
    lasts = {} if duration_seconds is None else {"duration_seconds": seconds_of(duration_seconds, "--for")}
    result = asker.send(SetFreeze, **fields, **lasts)
    asker.say(deed(SetFreeze, result), result)


@sends(DeleteFreeze)
def unfreeze(asker: Asker, freeze: str) -> None:
    """End a freeze. What it held continues."""
    result = asker.send(DeleteFreeze, freeze=freeze)
    asker.say(deed(DeleteFreeze, result), result)


def freezes(*, as_json: AsJson = False) -> None:
    """Show in which windows nothing starts, and which of them are on."""
    with Reader() as reader:
        views = reader.views(FreezeView, "/v1/freezes")
    if as_json:
        return print_json([asdict(view) for view in views])
    if not views:
        return printer().print("There are no freezes; 'rollway freeze --help' says how to set one.")
    table = columns("NAME", "NOW", "WINDOW", "OVER", "UNDER WAY", "WHY")
    for view in views:
        over = ", ".join([*view.deployments, *(f"group {group}" for group in view.groups)]) or "all"
        now = Text(_when(view), "yellow" if view.frozen_until else "")
        table.add_row(view.name, now, _window(view), over, "pauses" if view.pauses else "finishes", view.reason)
    return printer().print(table)


def _when(view: FreezeView) -> str:
    if view.frozen_until is not None:
        return f"on until {instant(view.frozen_until)}"
    return f"from {instant(view.next_start)}" if view.next_start is not None else "over"


def _window(view: FreezeView) -> str:
    if view.starts_at is not None and view.ends_at is not None:
        return f"{instant(view.starts_at)} to {instant(view.ends_at)}"
    lasts = timedelta(seconds=view.duration_seconds or 0)
    return f"{view.cron} {view.time_zone} for {duration(lasts)}"


@sends(SetGroup, most_at_once="--at-most")
def group(asker: Asker, **fields: object) -> None:
    """Let deployments share a budget of rollouts. Replaces the group of that name.

    A rollout that finds no place begins and waits, its clocks stopped; the first to ask goes first, or with
    --in-order the first of the list. Undo and rollback do not wait.
    """
    result = asker.send(SetGroup, **fields)
    asker.say(deed(SetGroup, result), result)


@sends(DeleteGroup)
def ungroup(asker: Asker, group: str) -> None:
    """Delete a group. Its deployments stay, and no longer wait for each other."""
    result = asker.send(DeleteGroup, group=group)
    asker.say(deed(DeleteGroup, result), result)


def groups(*, as_json: AsJson = False) -> None:
    """Show the groups, their rollouts, and those that wait."""
    with Reader() as reader:
        views = reader.views(GroupView, "/v1/groups")
    if as_json:
        return print_json([asdict(view) for view in views])
    if not views:
        return printer().print("There are no groups; 'rollway group --help' says how to make one.")
    table = columns("NAME", "AT MOST", "UNDER WAY", "WAITING", "DEPLOYMENTS")
    for view in views:
        under_way, waiting = (", ".join(names) or "-" for names in (view.under_way, view.waiting))
        members = (" → " if view.in_order else ", ").join(view.deployments)
        table.add_row(view.name, str(view.most_at_once or "-"), under_way, waiting, members)
    return printer().print(table)
