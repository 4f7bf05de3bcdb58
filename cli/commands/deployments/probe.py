"""`rollway probe`."""

from typing import Annotated, Any
from uuid import UUID

import typer
from rich.text import Text

from cli.options import AsJson, DeploymentName
from cli.reads import last_failed_route
from cli.servers import Reader, made
from cli.show.status import short_id
from cli.terminal.exits import ExitCode
from cli.terminal.output import print_json, printer
from db.views.routes import RouteView
from domain.commands.base import DEPLOYMENT


def probe(
    *,
    deployment: DeploymentName,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="REVISION", help="Only its replicas.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Examine how replicas answer, and say what mends them.

    Their hosts ask each as a probe does and as callers do, and wait for 10 s whatever the limit of a probe is: whether
    something listens, at which address, in which protocol, which paths and host names it knows, whether an answer is
    whole. 20 replicas are examined at most, the newest first. Exit code 1 when something is wrong.
    """
    with Reader() as reader:
        body = {} if revision is None else {"revision": revision}
        found = reader.ask(f"{DEPLOYMENT}/probe", deployment, **body)
        failed = None if found["items"] else last_failed_route(reader, deployment)
    if as_json:
        print_json(found)
    else:
        _show(deployment, found, failed)
    if any(item["advice"] for item in found["items"]) or found["silent"] or not found["items"]:
        raise typer.Exit(ExitCode.REFUSED)


def _show(deployment: str, found: dict[str, Any], failed: RouteView | None) -> None:
    out = printer()
    for item in found["items"]:
        where = f"{item['address']} on {item['host']}" if item["address"] else item["host"]
        out.print(f"{short_id(made(UUID, item['route']))} {item['revision']} {item['status']} at {where}", style="bold")
        out.print(Text(f"  {item['saw']}"))
        out.print(Text(f"  {item['advice'] or 'nothing is wrong'}", "yellow" if item["advice"] else "green"))
    for host in found["silent"]:
        out.print(f"{host} does not answer: no worker runs there, or it examines others now.", style="yellow")
    if found["items"] or found["silent"]:
        return
    out.print(f"No replica of it runs now; 'rollway retry {deployment}' starts what failed again.")
    if failed and failed.reason:
        out.print(Text(f"The last one that failed: {failed.reason}", "yellow"))
