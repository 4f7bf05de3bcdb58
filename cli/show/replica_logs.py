"""What replicas print, on this host and on others, read on again and again, and shown as it is printed."""

import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from rich.console import Console
from rich.text import Text

from cli.reads import deployment_named
from cli.remote import remote
from cli.servers import Reader, made
from cli.show.status import short_id
from cli.terminal.output import printer
from db.views.deployment_view import DeploymentView
from db.views.routes import RouteView
from domain.commands.base import DEPLOYMENT
from domain.model.states import Lifecycle
from domain.replicas.placement import EXTERNAL
from runtime.process.logs import LogPiece, ProcessLogs
from stack.home.folder import find_home
from stack.supervisor.stop import host_of

Pieces = dict[UUID, LogPiece]
_ASKED_AGAIN_SECONDS = 10.0
_MOST_PLACES = 2_000
"""So many are read at once."""


@dataclass(slots=True)
class ReplicaLogs:
    """Reads on. `places`: how far each was read; `silent`: hosts that do not answer, and when each is asked again."""

    reader: Reader
    deployment: str
    lines: int
    home: Path = field(default_factory=lambda: find_home(os.environ).root)
    places: dict[UUID, int] = field(default_factory=dict)
    silent: dict[str, float] = field(default_factory=dict)

    @property
    def here(self) -> str | None:
        """The host whose logs are the files of this home; None: a server is asked for those of all hosts."""
        return host_of(self.home) if remote() is None else None

    def read_on(self, routes: Collection[RouteView]) -> Pieces:
        """Return what is new of each replica; nothing of one whose log cannot be read now."""
        local = ProcessLogs(self.home)
        pieces: Pieces = {}
        elsewhere: dict[str, dict[UUID, int | None]] = {}
        for route in routes:
            if local.path(route.id).exists():
                pieces[route.id] = local.read_on(route.id, self.places.get(route.id), self.lines)
            elif route.host not in (None, self.here, EXTERNAL):
                elsewhere.setdefault(str(route.host), {})[route.id] = self.places.get(route.id)
        pieces |= self._asked(elsewhere)
        self.places |= {route_id: piece.place for route_id, piece in pieces.items()}
        return pieces

    def _asked(self, elsewhere: dict[str, dict[UUID, int | None]]) -> Pieces:
        """A host that was silent is left alone for a while, so that it does not hold up the others."""
        asked = {host: places for host, places in elsewhere.items() if self.silent.get(host, 0) <= time.monotonic()}
        places = [{"route": str(id_), "place": place} for each in asked.values() for id_, place in each.items()]
        pieces: Pieces = {}
        silent: set[str] = set()
        for begin in range(0, len(places), _MOST_PLACES):
            some = places[begin : begin + _MOST_PLACES]
            told = self.reader.ask(f"{DEPLOYMENT}/logs", self.deployment, lines=self.lines, places=some)
            pieces |= {made(UUID, log["route"]): LogPiece(log["text"], log["place"]) for log in told["items"]}
            silent |= set(told["silent"])
        for host in asked:
            self.silent.pop(host, None)
            if host in silent:
                self.silent[host] = time.monotonic() + _ASKED_AGAIN_SECONDS
        return pieces


_POLL_SECONDS = 0.5
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_green")


def follow_deployment(reader: Reader, deployment: DeploymentView, lines: int) -> None:
    """Until Ctrl-C, or until the deployment is destroyed; a replica that goes is read once more to its end."""
    console, logs = printer(), ReplicaLogs(reader, deployment.name, lines)
    colours: dict[UUID, str] = {}
    told: set[str] = set()
    followed: dict[UUID, RouteView] = {}
    view = deployment
    try:
        while True:
            now = {route.id: route for route in view.routes}
            _show(console, logs, (followed | now).values(), colours)
            _tell_silent(logs.silent.keys() - told, deployment.name)
            told = set(logs.silent)
            if view.lifecycle is Lifecycle.DESTROYED:
                return
            followed = now
            time.sleep(_POLL_SECONDS)
            view = deployment_named(reader, deployment.name)
    except KeyboardInterrupt:
        return


def _show(console: Console, logs: ReplicaLogs, routes: Iterable[RouteView], colours: dict[UUID, str]) -> None:
    known = {route.id: route for route in routes}
    for route_id, piece in logs.read_on(known.values()).items():
        colour = colours.setdefault(route_id, _COLOURS[len(colours) % len(_COLOURS)])
        whose = Text(f"{short_id(route_id)} {known[route_id].revision} | ", style=colour)
        for line in piece.text.splitlines():
            console.print(whose + Text(line), soft_wrap=True)
    console.file.flush()


def _tell_silent(hosts: Iterable[str], deployment: str) -> None:
    for host in sorted(hosts):
        message = f"host {host} does not say what its replicas print: 'rollway logs {deployment} --follow' there does"
        printer(stderr=True).print(message, style="yellow")
