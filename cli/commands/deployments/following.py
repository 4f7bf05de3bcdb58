"""`rollway logs DEPLOYMENT --follow`: the lines of all replicas as they are printed, each with its name."""

import time
from collections.abc import Iterable
from uuid import UUID

from rich.console import Console
from rich.text import Text

from cli.servers import Reader, deployment_named
from cli.show.replica_logs import ReplicaLogs
from cli.show.status import short_id
from cli.terminal.output import printer
from db.views.deployments import DeploymentView
from db.views.routes import RouteView
from domain.model.deployment import Lifecycle

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
