"""`rollway events`: changes, as they happen."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from api.people.streams.change_feed import Telling, cursor_of, instant_of
from cli.client import Reader, deployment_named
from cli.completion import deployments_offered
from cli.options import AsJson
from cli.remote import Remote, remote
from cli.terminal.exits import UnreachableError, UsageError, close_quietly
from cli.terminal.output import printer
from db.views.fleet_changes import Changes, caught_up, changes_since

BEGUN = "begun"
"""The kind of the first event of a stream: nothing has happened."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An event. `id`: with which a later stream continues after it; `kind`: deployment, history or begun."""

    id: str
    kind: str
    data: dict[str, Any]

    @property
    def deployment(self) -> str:
        """The name of its deployment."""
        return str(self.data["name" if self.kind == "deployment" else "deployment"])


_READ_SECONDS = 0.5
_TELLER = "cli"
"""The prefix of our ids: a server takes them for those of another process, and continues from their time."""


def listen(reader: Reader, names: Sequence[str] | None, last: str | None) -> Iterator[Heard]:
    """Events of these deployments, or of all visible ones; see `lasting`."""
    server = remote()
    for event in _remote_events(server, names, last) if server else _local_events(reader, names, last):
        if event.kind == BEGUN or names is None or event.deployment in names:
            yield event


def _remote_events(server: Remote, names: Sequence[str] | None, last: str | None) -> Iterator[Heard]:
    parameters = {"deployment": names[0]} if names and len(names) == 1 else {}
    headers = {"last-event-id": last} if last else {}
    fields: dict[str, str] = {}
    for line in server.lines("/v1/events", parameters, headers):
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
            continue
        yield Heard(fields.get("id", ""), fields.get("event", BEGUN), json.loads(fields.get("data", "{}")))
        fields = {}


def _local_events(reader: Reader, names: Sequence[str] | None, last: str | None) -> Iterator[Heard]:
    telling = Telling()
    changes = reader.look(changes_since, {}, None)
    yield Heard(_cursor(changes), BEGUN, {})
    if last is not None:
        yield from _events_of(telling, reader.look(caught_up, names, instant_of(last)))
    while True:
        time.sleep(_READ_SECONDS)
        changes = reader.look(changes_since, changes.states, changes.at)
        yield from _events_of(telling, changes)


def _events_of(telling: Telling, changes: Changes) -> Iterator[Heard]:
    for kind, _, document in telling.new(changes):
        yield Heard(_cursor(changes), kind, document)


def _cursor(changes: Changes) -> str:
    return cursor_of(_TELLER, 0, changes.at)


_AGAIN_SECONDS = 1.0
_PATIENCE_SECONDS = 60.0


def lasting(listen: Callable[[str | None], Iterator[Heard]], last: str | None) -> Iterator[Heard]:
    """The events of `listen`, which is called with the id of the last event, again after each break.

    Raises UnreachableError when it cannot be opened at first, or not again for a minute.
    """
    lost_at: float | None = None
    has_begun = False
    while True:
        try:
            for event in listen(last):
                last, lost_at, has_begun = event.id or last, None, True
                yield event
        except UnreachableError:
            lost_at = lost_at or time.monotonic()
            if not has_begun or time.monotonic() - lost_at > _PATIENCE_SECONDS:
                raise
        time.sleep(_AGAIN_SECONDS)


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
    states: dict[str, str] = {}
    try:
        with Reader() as reader:
            for name in names or ():
                deployment_named(reader, name)
            for event in lasting(partial(listen, reader, names), last):
                _tell(event, states, as_json=as_json)
    except KeyboardInterrupt:
        return
    except BrokenPipeError:
        close_quietly()


def _tell(event: Heard, states: dict[str, str], *, as_json: bool) -> None:
    """Print an event. `states`: by deployment what was printed last; only a change is printed."""
    if event.kind == BEGUN:
        return
    if as_json:
        sys.stdout.write(json.dumps({"id": event.id, "event": event.kind, "data": event.data}) + "\n")
        sys.stdout.flush()
        return
    what = _record(event.data) if event.kind == "history" else _state(event.data)
    if event.kind == "deployment" and states.get(event.deployment) == what:
        return
    if event.kind == "deployment":
        states[event.deployment] = what
    at = event.data["updated_at" if event.kind == "history" else "now"]
    console = printer()
    console.print(Text.assemble((_clock(at), "dim"), "  ", (event.deployment, "bold"), f"  {what}"), soft_wrap=True)
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
