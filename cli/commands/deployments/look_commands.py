"""`rollway history` and `rollway probe`: what happened to a deployment, and how its replicas answer."""

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.text import Text

from api.people.paths import DEPLOYMENT
from cli.client import Reader, build, deployment_named, last_failed_route, signs_of_life
from cli.completion import deployments_offered
from cli.options import AsJson, DeploymentName
from cli.show.status import short_id
from cli.terminal.durations import instant_of
from cli.terminal.exits import ExitCode
from cli.terminal.output import ago, columns, print_json, printer
from db.views.activity import HappenedView
from db.views.route_views import RouteView
from db.views.timeline import HistoryView
from domain.model.states import Verdict

_SINCE = "From then on: a length such as 4h or 2d, or a date such as 2026-11-28."
_BEGINNING = datetime.min.replace(tzinfo=UTC)


def history(
    *,
    deployment: Annotated[
        str | None,
        typer.Argument(
            metavar="[DEPLOYMENT]",
            help="Only this one, from its beginning on.",
            show_default=False,
            autocompletion=deployments_offered,
        ),
    ] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=10_000, help="How many of the last records.")] = 30,
    since: Annotated[str | None, typer.Option("--since", metavar="WHEN", help=_SINCE, show_default=False)] = None,
    who: Annotated[
        str | None,
        typer.Option("--who", metavar="NAME", help="Only what this person or service did.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what happened, with actor and reason; without a name in the whole fleet within the last hour.

    In the fleet that includes freezes, groups, hosts and subscriptions, and for admins tokens and sign-ins. The newest
    comes last.
    """
    if deployment is None or since is not None or who is not None:
        return _history_of_all(lines, deployment, since, who, as_json=as_json)
    with Reader() as reader:
        view = deployment_named(reader, deployment)
        records = reader.views(HistoryView, f"{DEPLOYMENT}/history", deployment, most=lines)[::-1]
    if as_json:
        return print_json(records)
    table = columns("WHEN", "WHO", "WHAT", "WHY")
    table.columns[1].max_width = 16
    states = [""] + [record.target for record in records]
    for record, state in zip(records, states, strict=False):
        table.add_row(ago(record.updated_at, view.now), *_row(record, state))
    return printer().print(table, soft_wrap=False)


def _history_of_all(lines: int, deployment: str | None, since: str | None, who: str | None, *, as_json: bool) -> None:
    with Reader() as reader:
        now = signs_of_life(reader).now
        begin = instant_of(since, "--since", now) if since else _BEGINNING if deployment else None
        parameters = {"deployment": deployment, "who": who, "since": begin.isoformat() if begin else None}
        records = reader.views(HappenedView, "/v1/history", most=lines, limit=lines, **parameters)[::-1]
    if as_json:
        return print_json(records)
    if not records:
        when = (
            "that time" if since else "the last hour; --since 2d shows what did before, and 'rollway history NAME', too"
        )
        return printer().print(f"Nothing has happened within {when}.")
    table = columns("WHEN", "DEPLOYMENT", "WHO", "WHAT", "WHY")
    table.columns[2].max_width = 16
    states: dict[str, str] = {}
    for record in records:
        row = _row(record, states.get(record.deployment, "") if record.deployment else record.target)
        table.add_row(ago(record.updated_at, now), record.deployment or "-", *row)
        states[record.deployment] = record.target
    return printer().print(table, soft_wrap=False)


def _row(record: HistoryView, state: str) -> tuple[str, str, str]:
    """The actor, the event and the reason. A verdict is shown when it is bad, the state when it has changed."""
    bad = f" {record.result}" if record.result in (Verdict.ERROR, Verdict.EXPIRED, Verdict.GIVE_UP) else ""
    change = f"→ {record.target}: " if record.target != state and state else ""
    times = f" ({record.attempts} times)" if record.attempts > 1 else ""
    if record.attempts > 1 and record.result == Verdict.NEED_RETRY:  # each did something else
        times = f" (the last of {record.attempts} steps)"
    return (
        "-" if record.actor == record.phase else record.actor,
        f"{record.phase}{bad}",
        f"{change}{record.message}{times}",
    )


def probe(
    *,
    deployment: DeploymentName,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="REVISION", help="Only its replicas.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Examine how replicas answer, and how to repair them.

    Their hosts ask each as a probe does and as callers do, and wait for 10 s whatever the limit of a probe is: whether
    something listens, at which address, in which protocol, which paths and host names it knows, whether an answer is
    whole. 20 replicas are examined at most, the newest first. Exit code 1 when something is wrong.
    """
    with Reader() as reader:
        body = {} if revision is None else {"revision": revision}
        answer = reader.ask(f"{DEPLOYMENT}/probe", deployment, **body)
        failed = None if answer["items"] else last_failed_route(reader, deployment)
    if as_json:
        print_json(answer)
    else:
        _show(deployment, answer, failed)
    if any(item["advice"] for item in answer["items"]) or answer["silent"] or not answer["items"]:
        raise typer.Exit(ExitCode.REFUSED)


def _show(deployment: str, answer: dict[str, Any], failed: RouteView | None) -> None:
    out = printer()
    for item in answer["items"]:
        where = f"{item['address']} on {item['host']}" if item["address"] else item["host"]
        out.print(
            f"{short_id(build(UUID, item['route']))} {item['revision']} {item['status']} at {where}", style="bold"
        )
        out.print(Text(f"  {item['saw']}"))
        out.print(Text(f"  {item['advice'] or 'nothing is wrong'}", "yellow" if item["advice"] else "green"))
    for host in answer["silent"]:
        out.print(f"{host} does not answer: no worker runs there, or it examines others now.", style="yellow")
    if answer["items"] or answer["silent"]:
        return
    out.print(f"No replica of it runs now; 'rollway retry {deployment}' starts what failed again.")
    if failed and failed.reason:
        out.print(Text(f"The last one that failed: {failed.reason}", "yellow"))
