"""`rollway logs`: the output of replicas, on this host and on others, as it is printed."""

import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.text import Text

from api.people.paths import DEPLOYMENT
from cli.client import Reader, build, deployment_named, failure_to_show
from cli.completion import deployments_offered
from cli.options import AsJson
from cli.remote import remote
from cli.show.status import short_id
from cli.terminal.exits import ElsewhereError, UsageError
from cli.terminal.output import print_json, printer
from db.views.deployment_view import DeploymentView
from db.views.route_views import RouteView
from domain.model.states import Lifecycle
from domain.replicas.host_choice import EXTERNAL
from domain.text.errors import DeploymentNotFoundError, InvalidInputError, RouteNotFoundError
from domain.text.storable import storable
from runtime.process.process_logs import LogPiece, ProcessLogs
from stack.home.folder import find_home
from stack.supervisor.stop import host_of

Pieces = dict[UUID, LogPiece]
_ASKED_AGAIN_SECONDS = 10.0
_MOST_PLACES = 2_000
"""The most logs read at once."""


@dataclass(slots=True)
class ReplicaLogs:
    """Reads logs on.

    `places`: how far each was read; `silent`: hosts that do not answer, and when to ask them again.
    """

    reader: Reader
    deployment: str
    lines: int
    home: Path = field(default_factory=lambda: find_home(os.environ).root)
    places: dict[UUID, int] = field(default_factory=dict)
    silent: dict[str, float] = field(default_factory=dict)

    @property
    def here(self) -> str | None:
        """The host whose logs are the files of this home; None: a server reads those of all hosts."""
        return host_of(self.home) if remote() is None else None

    def read_on(self, routes: Collection[RouteView]) -> Pieces:
        """The new output of each replica; nothing of one whose log cannot be read now."""
        local = ProcessLogs(self.home)
        pieces: Pieces = {}
        elsewhere: dict[str, dict[UUID, int | None]] = {}
        for route in routes:
            if local.path(route.id).exists():
                pieces[route.id] = local.read_on(route.id, self.places.get(route.id), self.lines)
            elif route.host not in (None, self.here, EXTERNAL):
                elsewhere.setdefault(str(route.host), {})[route.id] = self.places.get(route.id)
        pieces |= self._remote_pieces(elsewhere)
        self.places |= {route_id: piece.place for route_id, piece in pieces.items()}
        return pieces

    def _remote_pieces(self, elsewhere: dict[str, dict[UUID, int | None]]) -> Pieces:
        """The output on other hosts.

        A silent host is left alone for a while, so that it does not hold up the others.
        """
        hosts = {host: places for host, places in elsewhere.items() if self.silent.get(host, 0) <= time.monotonic()}
        places = [{"route": str(id_), "place": place} for each in hosts.values() for id_, place in each.items()]
        pieces: Pieces = {}
        silent: set[str] = set()
        for begin in range(0, len(places), _MOST_PLACES):
            some = places[begin : begin + _MOST_PLACES]
            answer = self.reader.ask(f"{DEPLOYMENT}/logs", self.deployment, lines=self.lines, places=some)
            pieces |= {build(UUID, log["route"]): LogPiece(log["text"], log["place"]) for log in answer["items"]}
            silent |= set(answer["silent"])
        for host in hosts:
            self.silent.pop(host, None)
            if host in silent:
                self.silent[host] = time.monotonic() + _ASKED_AGAIN_SECONDS
        return pieces


_DEPLOYMENT_PAUSE_SECONDS = 0.5
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_green")


def follow_deployment(reader: Reader, deployment: DeploymentView, lines: int) -> None:
    """Follow until Ctrl-C, or until the deployment is destroyed; a replica that goes is read once more to its end."""
    console, logs = printer(), ReplicaLogs(reader, deployment.name, lines)
    colours: dict[UUID, str] = {}
    silent: set[str] = set()
    followed: dict[UUID, RouteView] = {}
    view = deployment
    try:
        while True:
            now = {route.id: route for route in view.routes}
            _show(console, logs, (followed | now).values(), colours)
            _tell_silent(logs.silent.keys() - silent, deployment.name)
            silent = set(logs.silent)
            if view.lifecycle is Lifecycle.DESTROYED:
                return
            followed = now
            time.sleep(_DEPLOYMENT_PAUSE_SECONDS)
            view = deployment_named(reader, deployment.name)
    except KeyboardInterrupt:
        return


def _show(console: Console, logs: ReplicaLogs, routes: Iterable[RouteView], colours: dict[UUID, str]) -> None:
    by_id = {route.id: route for route in routes}
    for route_id, piece in logs.read_on(by_id.values()).items():
        colour = colours.setdefault(route_id, _COLOURS[len(colours) % len(_COLOURS)])
        whose = Text(f"{short_id(route_id)} {by_id[route_id].revision} | ", style=colour)
        for line in piece.text.splitlines():
            console.print(whose + Text(line), soft_wrap=True)
    console.file.flush()


def _tell_silent(hosts: Iterable[str], deployment: str) -> None:
    for host in sorted(hosts):
        message = f"host {host} does not say what its replicas print: 'rollway logs {deployment} --follow' there does"
        printer(stderr=True).print(message, style="yellow")


_REPLICA_PAUSE_SECONDS = 0.2
_STATUS_SECONDS = 1.0
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class _Log:
    """The output of a replica. `file`: None where it is not here. `text`: None where nothing is known of it."""

    route: RouteView
    file: Path | None
    text: str | None

    def as_json(self) -> dict[str, Any]:
        lines = None if self.text is None else self.text.splitlines()
        return {"route": self.route.id, "host": self.route.host, "file": self.file, "lines": lines}


def logs(
    *,
    whose: Annotated[
        str,
        typer.Argument(
            metavar="ROUTE|DEPLOYMENT",
            help="Id of the replica, or its first or last digits; or a deployment: all of its replicas.",
            show_default=False,
            autocompletion=deployments_offered,
        ),
    ],
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=100_000, help="How many of the last lines of each replica.")
    ] = 100,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Stay and show what is printed; end it with Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a replica has printed, or the replicas of a deployment and the one that failed last.

    That one is shown while starts fail, and for an hour. Of replicas on other hosts their hosts are asked; one that
    does not answer is named. With --follow each line of a deployment begins with its replica, and new replicas are
    followed too. 'rollway routes' lists the ids and hosts; a log stays when its replica is gone. A terminal is shown no
    control characters; a pipe or a file gets them as they were printed.
    """
    with Reader() as reader:
        if deployment := _deployment(reader, whose):
            if follow and as_json:
                raise UsageError("--follow and --json do not go together: a script should ask for --lines again")
            if follow:
                return follow_deployment(reader, deployment, lines)
            failed = failure_to_show(reader, deployment)
            source = ReplicaLogs(reader, deployment.name, lines)
            entries = _logs_of((*deployment.routes, *([failed] if failed else [])), source)
            return print_json([log.as_json() for log in entries]) if as_json else _show_all(deployment, entries, source)
        name, route = _route(reader, whose)
        source = ReplicaLogs(reader, name, lines)
        (log,) = _logs_of((route,), source)
        if log.text is None:
            _refuse_elsewhere(route, source)
        if as_json:
            return print_json(log.as_json())
        if log.text is None:
            return printer(stderr=True).print(f"{short_id(route.id)} {_NOTHING}.")
        _write(f"{log.text}\n" if log.text else "")
        return _go_on(reader, log, source) if follow else None


_NOTHING = "has printed nothing yet, or what runs it keeps its log"


def _deployment(reader: Reader, name: str) -> DeploymentView | None:
    try:
        return deployment_named(reader, name)
    except DeploymentNotFoundError:
        return None


def _logs_of(routes: Sequence[RouteView], source: ReplicaLogs) -> list[_Log]:
    """The logs from the files of their hosts; of a failed replica whose host is silent the lines that were kept."""
    files, pieces = ProcessLogs(source.home), source.read_on(routes)
    return [_log_of(route, pieces.get(route.id), files.path(route.id)) for route in routes]


def _log_of(route: RouteView, piece: LogPiece | None, path: Path) -> _Log:
    text = route.log_tail if piece is None else piece.text.removesuffix("\n")
    return _Log(route, path if path.exists() else None, text)


def _refuse_elsewhere(route: RouteView, source: ReplicaLogs) -> None:
    """Raises ElsewhereError for a replica of a host that does not answer."""
    if route.host not in source.silent:
        return
    message = f"{short_id(route.id)} runs on host {route.host}, where its log is: run 'rollway logs' there"
    raise ElsewhereError(message, route=route.id, host=route.host)


def _show_all(deployment: DeploymentView, entries: list[_Log], source: ReplicaLogs) -> None:
    """Print each log under its name; those of other hosts name the host."""
    if not entries:
        more = f"'rollway routes {deployment.name} --all' shows those that are gone"
        return printer(stderr=True).print(f"{deployment.name} has no replicas; {more}.")
    for log in entries:
        route = log.route
        elsewhere = f" on host {route.host}" if route.host not in (None, source.here) else ""
        text = log.text or ("(its log is there)" if elsewhere and log.text is None else f"(it {_NOTHING})")
        _write(f"==> {short_id(route.id)} {route.revision} {route.status}{elsewhere} <==\n{text}\n")
    return None


def _route(reader: Reader, route_id: str) -> tuple[str, RouteView]:
    """The name of its deployment, and the replica. Raises its refusals."""
    digits = route_id.replace("-", "").lower()
    if not digits or set(digits) - _HEX:
        message = (
            f"there is no deployment {route_id}, and no id of a replica looks like that; 'rollway status' lists them"
        )
        raise DeploymentNotFoundError(message, deployment=route_id)
    rows = reader.ask("/v1/routes", id=digits)["items"]
    if not rows:
        message = f"there is no route {route_id}; 'rollway routes DEPLOYMENT' lists those that exist"
        raise RouteNotFoundError(message, route=route_id)
    if len(rows) > 1:
        ids = ", ".join(short_id(build(UUID, each["id"])) for each in rows[:5])
        message = f"ROUTE: {route_id} could be any of {ids}{', ...' if len(rows) > 5 else ''}; give more digits"  # noqa: PLR2004
        raise InvalidInputError(message, field="ROUTE")
    return rows[0]["deployment"], build(RouteView, rows[0])


def _go_on(reader: Reader, log: _Log, source: ReplicaLogs) -> None:
    return _follow(reader, log.route, log.file) if log.file else _follow_elsewhere(reader, log.route, source)


def _follow(reader: Reader, route: RouteView, path: Path) -> None:
    """Show what comes until Ctrl-C, or until the replica is gone and its log is shown to the end."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            file.seek(0, os.SEEK_END)
            for _ in _until_gone(reader, route):
                if os.fstat(file.fileno()).st_size < file.tell():  # it was truncated
                    file.seek(0)
                _write(file.read())
    except KeyboardInterrupt:
        return


def _follow_elsewhere(reader: Reader, route: RouteView, source: ReplicaLogs) -> None:
    """Follow a replica on another host."""
    try:
        for _ in _until_gone(reader, route):
            for piece in source.read_on([route]).values():
                _write(piece.text)
    except KeyboardInterrupt:
        return


def _until_gone(reader: Reader, route: RouteView) -> Iterator[None]:
    """Yield each time there may be something new, and once more when the replica is gone."""
    read_at = time.monotonic()
    gone = False
    while not gone:
        yield
        time.sleep(_REPLICA_PAUSE_SECONDS)
        if time.monotonic() - read_at > _STATUS_SECONDS:
            read_at = time.monotonic()
            (now,) = reader.views(RouteView, "/v1/routes", id=route.id.hex)
            gone = now.stopped_at is not None
    yield


def _write(text: str) -> None:
    """Write the text as it is into a pipe or a file; a terminal would obey control characters."""
    sys.stdout.write(storable(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()
