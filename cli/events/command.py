"""`rollway events`: what changes, as it changes."""

import json
import sys
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.completing import deployments_offered
from cli.events.listening import BEGUN, Heard, lasting, listen
from cli.options import AsJson
from cli.reads import deployment_named
from cli.servers import Reader
from cli.terminal.exits import UsageError
from cli.terminal.output import printer
from cli.terminal.streams import close_quietly


def events(
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DEPLOYMENT]...", help="Only these.", autocompletion=deployments_offered),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Stay and show what changes; end it with Ctrl-C.")
    ] = False,
    last: Annotated[
        str | None,
        typer.Option(
            "--last-event-id", metavar="ID", help="First what has happened since that event.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what changes as it changes: each record of the timelines, and how a deployment is after it.

    With --json each event is a line of its own, and its id is what --last-event-id takes: what was missed meanwhile
    comes first, then one event or another may come twice, and none is missing. A break is mended in the same way.
    """
    if not follow:
        raise UsageError("add --follow; what happened to a deployment until now, 'rollway history DEPLOYMENT' shows")
    seen: dict[str, str] = {}
    try:
        with Reader() as reader:
            for name in names or ():
                deployment_named(reader, name)
            for heard in lasting(partial(listen, reader, names), last):
                _tell(heard, seen, as_json=as_json)
    except KeyboardInterrupt:
        return
    except BrokenPipeError:
        close_quietly()


def _tell(heard: Heard, seen: dict[str, str], *, as_json: bool) -> None:
    """`seen`: by deployment how it was shown last; it is shown when it is otherwise."""
    if heard.kind == BEGUN:
        return
    if as_json:
        sys.stdout.write(json.dumps({"id": heard.id, "event": heard.kind, "data": heard.data}) + "\n")
        sys.stdout.flush()
        return
    what = _record(heard.data) if heard.kind == "history" else _state(heard.data)
    if heard.kind == "deployment" and seen.get(heard.deployment) == what:
        return
    if heard.kind == "deployment":
        seen[heard.deployment] = what
    at = heard.data["updated_at" if heard.kind == "history" else "now"]
    console = printer()
    console.print(Text.assemble((_clock(at), "dim"), "  ", (heard.deployment, "bold"), f"  {what}"), soft_wrap=True)
    console.file.flush()


def _record(record: dict[str, Any]) -> str:
    who = "" if record["actor"] == record["phase"] else f"{record['actor']}: "
    times = f" ({record['attempts']} times)" if record["attempts"] > 1 else ""
    return f"{who}{record['phase']}: {record['message']}{times}"


def _state(document: dict[str, Any]) -> str:
    return f"{document['state']}  {document['picture']}  {document['reason']}".rstrip()


def _clock(at: str) -> str:
    """The time of day in this machine's time zone."""
    return datetime.fromisoformat(at).astimezone().strftime("%H:%M:%S")
