"""`rollway logs`."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from cli.options import AsJson
from cli.output import print_json, printer
from cli.servers import Reader
from cli.show.status import short_id
from db.views.routes import RouteView, routes_abbreviated
from domain.errors import InvalidInputError, RouteNotFoundError
from domain.text import storable
from runtime.process import ProcessRuntime
from stack.home import find_home

_POLL_SECONDS = 0.2
_STOPPED_POLL_SECONDS = 1.0
_HEX = frozenset("0123456789abcdef")


def logs(
    *,
    route: Annotated[
        str, typer.Argument(metavar="ROUTE", help="Id of the replica, or its first or last digits.", show_default=False)
    ],
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=100_000, help="How many of the last lines.")] = 100,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Stay and show what comes; end it with Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a replica has printed. 'rollway routes' lists the ids; a log stays when its replica is gone.

    A terminal is shown no control characters; a pipe or a file gets them as they were printed.
    """
    with Reader() as reader:
        found = _route(reader, route)
        runtime = ProcessRuntime(find_home(os.environ).root)
        path = runtime.log_path(found.id)
        text = runtime.log_tail(found.id, lines) if path.exists() else found.log_tail
        if as_json:
            return print_json({"route": found.id, "file": path if path.exists() else None, "lines": _lines(text)})
        if text is None:
            why = "it has not printed anything yet, or it runs on another host"
            return printer(stderr=True).print(f"No log of {short_id(found.id)} in {path.parent}: {why}.")
        _write(f"{text}\n" if text else "")
        return _follow(reader, found, path) if follow else None


def _lines(text: str | None) -> list[str] | None:
    return None if text is None else text.splitlines()


def _route(reader: Reader, given: str) -> RouteView:
    digits = given.replace("-", "").lower()
    if not digits or set(digits) - _HEX:
        message = f"ROUTE: {given!r} is no route id; 'rollway routes DEPLOYMENT' lists them"
        raise InvalidInputError(message, field="ROUTE")
    found = reader.read(routes_abbreviated, digits)
    if not found:
        message = f"there is no route {given}; 'rollway routes DEPLOYMENT' lists those that exist"
        raise RouteNotFoundError(message, route=given)
    if len(found) > 1:
        ids = ", ".join(short_id(route.id) for route in found[:5])
        message = f"ROUTE: {given} could be any of {ids}{', ...' if len(found) > 5 else ''}; give more digits"  # noqa: PLR2004
        raise InvalidInputError(message, field="ROUTE")
    return found[0]


def _follow(reader: Reader, route: RouteView, path: Path) -> None:
    """Show what comes until Ctrl-C, or until the replica is gone and its log is shown to the end."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            file.seek(0, os.SEEK_END)
            for _ in _until_gone(reader, route):
                _write(file.read())
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
            (now,) = reader.read(routes_abbreviated, route.id.hex)
            gone = now.stopped_at is not None
    yield


def _write(text: str) -> None:
    """As it is into a pipe or a file; a terminal would obey what a replica prints."""
    sys.stdout.write(storable(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()
