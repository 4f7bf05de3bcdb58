"""`rollway logs`."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from cli.completing import deployments_offered
from cli.options import AsJson
from cli.reads import deployment_named, failure_to_show
from cli.servers import Reader, made
from cli.show.replica_logs import ReplicaLogs, follow_deployment
from cli.show.status import short_id
from cli.terminal.exits import ElsewhereError, UsageError
from cli.terminal.output import print_json, printer
from db.views.deployment_view import DeploymentView
from db.views.routes import RouteView
from domain.words.errors import DeploymentNotFoundError, InvalidInputError, RouteNotFoundError
from domain.words.text import storable
from runtime.process.logs import LogPiece, ProcessLogs

_POLL_SECONDS = 0.2
_STOPPED_POLL_SECONDS = 1.0
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class _Log:
    """The output of a replica. `file`: None where there is none here. `text`: None where nothing is known of it."""

    route: RouteView
    file: Path | None
    text: str | None

    def as_json(self) -> dict[str, Any]:
        """As scripts read it."""
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

    That one is shown while starts fail, and for an hour.
    Of replicas on other hosts their hosts are asked; one that does not answer is named. With --follow each line of a
    deployment says whose it is, and replicas that come up are followed too.
    'rollway routes' lists the ids and hosts; a log stays when its replica is gone.
    A terminal is shown no control characters; a pipe or a file gets them as they were printed.
    """
    with Reader() as reader:
        if deployment := _deployment(reader, whose):
            if follow and as_json:
                raise UsageError("--follow and --json do not go together: a script should ask for --lines again")
            if follow:
                return follow_deployment(reader, deployment, lines)
            failed = failure_to_show(reader, deployment)
            source = ReplicaLogs(reader, deployment.name, lines)
            found = _logs_of((*deployment.routes, *([failed] if failed else [])), source)
            return print_json([log.as_json() for log in found]) if as_json else _show_all(deployment, found, source)
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
    """From the files of their hosts; of a failed replica whose host does not answer the lines that were kept."""
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


def _show_all(deployment: DeploymentView, found: list[_Log], source: ReplicaLogs) -> None:
    """Each under its name; those of other hosts are named."""
    if not found:
        more = f"'rollway routes {deployment.name} --all' shows those that are gone"
        return printer(stderr=True).print(f"{deployment.name} has no replicas; {more}.")
    for log in found:
        route = log.route
        elsewhere = f" on host {route.host}" if route.host not in (None, source.here) else ""
        said = log.text or ("(its log is there)" if elsewhere and log.text is None else f"(it {_NOTHING})")
        _write(f"==> {short_id(route.id)} {route.revision} {route.status}{elsewhere} <==\n{said}\n")
    return None


def _route(reader: Reader, given: str) -> tuple[str, RouteView]:
    """The name of its deployment, and the replica. Raises its refusals."""
    digits = given.replace("-", "").lower()
    if not digits or set(digits) - _HEX:
        message = f"there is no deployment {given}, and no id of a replica looks like that; 'rollway status' lists them"
        raise DeploymentNotFoundError(message, deployment=given)
    found = reader.ask("/v1/routes", id=digits)["items"]
    if not found:
        message = f"there is no route {given}; 'rollway routes DEPLOYMENT' lists those that exist"
        raise RouteNotFoundError(message, route=given)
    if len(found) > 1:
        ids = ", ".join(short_id(made(UUID, each["id"])) for each in found[:5])
        message = f"ROUTE: {given} could be any of {ids}{', ...' if len(found) > 5 else ''}; give more digits"  # noqa: PLR2004
        raise InvalidInputError(message, field="ROUTE")
    return found[0]["deployment"], made(RouteView, found[0])


def _go_on(reader: Reader, log: _Log, source: ReplicaLogs) -> None:
    return _follow(reader, log.route, log.file) if log.file else _follow_elsewhere(reader, log.route, source)


def _follow(reader: Reader, route: RouteView, path: Path) -> None:
    """Show what comes until Ctrl-C, or until the replica is gone and its log is shown to the end."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            file.seek(0, os.SEEK_END)
            for _ in _until_gone(reader, route):
                if os.fstat(file.fileno()).st_size < file.tell():  # it was begun anew
                    file.seek(0)
                _write(file.read())
    except KeyboardInterrupt:
        return


def _follow_elsewhere(reader: Reader, route: RouteView, source: ReplicaLogs) -> None:
    """Follow a replica whose host is asked."""
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
        time.sleep(_POLL_SECONDS)
        if time.monotonic() - read_at > _STOPPED_POLL_SECONDS:
            read_at = time.monotonic()
            (now,) = reader.views(RouteView, "/v1/routes", id=route.id.hex)
            gone = now.stopped_at is not None
    yield


def _write(text: str) -> None:
    """As it is into a pipe or a file; a terminal would obey what a replica prints."""
    sys.stdout.write(storable(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()
